"""The HTTP client for model calls: HTTP/1.1 over asyncio and httptools, with keep-alive.

A general client costs about 2.4 ms of processor time for a request and 20 us for a chunk, more than
a whole turn may cost here; this one does what model calls need, for a tenth of that. No redirects,
no cookies, and one kind of retry: a kept connection that turns out to be closed is replaced, if no
byte of the response has arrived.

Invariant: leaving `open` by an error or a cancellation closes its connection.
"""

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypedDict
from urllib.parse import quote, urlsplit

from perdure.host.http import body
from perdure.host.http import proxy as http_proxy
from perdure.host.http.connection import Connection, Head
from perdure.host.http.proxy import Proxy, ProxyRules, Tunnel
from perdure.host.http.tls import system_tls
from perdure.lazy_pattern import lazy_pattern
from perdure.net import host_name
from perdure.net.transport import HttpRequest, HttpResponse, TransportError
from perdure.schema.value import Value
from perdure.version import __version__

CONNECT_SECONDS_MAX: Final = 30
IDLE_SECONDS_MAX: Final = 60
IDLE_CONNECTIONS_MAX: Final = 64
_ADDRESS_FALLBACK_SECONDS: Final = 0.25
_PORTS: Final = {"http": 80, "https": 443}
_PATH_CHARS: Final = "/%:@!$&'()*+,;=~-._?"
_BAD_HEADER: Final = lazy_pattern(r"[\x00\r\n]")
_USER_AGENT: Final = f"perdure/{__version__}"


class Origin(Value):
    scheme: str
    host: str
    port: int

    @property
    def bracketed_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def authority(self) -> str:
        usual = self.port == _PORTS[self.scheme]
        return self.bracketed_host if usual else f"{self.bracketed_host}:{self.port}"


class Target(Value):
    origin: Origin
    path: str


class HttptoolsTransport:
    """Implements net.transport.HttpTransport."""

    def __init__(
        self,
        *,
        proxies: ProxyRules = http_proxy.NO_PROXIES,
        tls: Callable[[], ssl.SSLContext] = system_tls,
        connect_seconds_max: float = CONNECT_SECONDS_MAX,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
        pinned: Sequence[str] = (),
        inflation_max: int | None = None,
        gather_seconds: float = 0,
    ) -> None:
        """With `pinned`, connections go only to these addresses, tried in order.

        Then neither this process nor a proxy resolves a name; the Host header and the certificate
        check still use the name in the URL.
        """
        self._proxies = proxies
        self._tls = functools.cache(tls)
        self._connect_seconds_max = connect_seconds_max
        self._idle_seconds_max = idle_seconds_max
        self._pinned = pinned
        self._inflation_max = inflation_max
        self._gather_seconds = gather_seconds
        self._pools: dict[Origin, _Pool] = {}

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        return self._open(request)

    async def aclose(self) -> None:
        """Close every connection, including those in use."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    @asynccontextmanager
    async def _open(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        target = parse_target(request.url)
        origin = target.origin
        proxy = self._proxies.proxy_for(origin.scheme, origin.host, origin.port)
        pieces = (_head(request, target, None if self._pinned else proxy), *request.body)
        pool = self._pool(origin)
        seconds = request.connect_seconds_max
        connect = functools.partial(
            self._connect,
            pool,
            origin,
            proxy,
            seconds=self._connect_seconds_max if seconds is None else seconds,
        )
        connection, (status, headers) = await _exchange(pool, connect, pieces)
        finished = False
        try:
            encoding = headers.get("content-encoding", "")
            chunks = body.decode_body(connection.read, encoding, inflation_max=self._inflation_max)
            yield HttpResponse(status=status, headers=headers, chunks=chunks)
            connection.finish()
            finished = True
        finally:
            if not finished:
                connection.abort()

    def _pool(self, origin: Origin) -> "_Pool":
        pool = self._pools.get(origin)
        if pool is None:
            pool = self._pools[origin] = _Pool(self._idle_seconds_max)
        return pool

    async def _connect(
        self, pool: "_Pool", origin: Origin, proxy: Proxy | None, *, seconds: float
    ) -> Connection:
        try:
            async with asyncio.timeout(seconds or None):
                connection = await self._dial(pool, origin, proxy)
        except TimeoutError as error:
            message = f"no connection to {origin.authority} within {seconds:g} s (`connect`)"
            raise TransportError(message) from error
        except (OSError, UnicodeError) as error:
            raise TransportError(f"cannot connect to {origin.authority}: {error}") from error
        pool.add(connection)
        return connection

    async def _dial(self, pool: "_Pool", origin: Origin, proxy: Proxy | None) -> Connection:
        if not self._pinned:
            return await self._connect_to(pool, origin, origin.host, proxy)
        share = self._connect_seconds_max / len(self._pinned)
        for address in self._pinned[:-1]:
            try:
                async with asyncio.timeout(share):
                    return await self._connect_to(pool, origin, address, proxy)
            except (OSError, TransportError):
                # Try the next address.
                continue
        return await self._connect_to(pool, origin, self._pinned[-1], proxy)

    async def _connect_to(
        self, pool: "_Pool", origin: Origin, address: str, proxy: Proxy | None
    ) -> Connection:
        """Connect to `address`, the origin's host name or one of its IP addresses."""
        loop = asyncio.get_running_loop()
        secure = origin.scheme == "https"
        name = origin.host if secure else None
        if proxy is not None and not proxy.speaks_http:
            from perdure.host.http import socks

            _, connection = await loop.create_connection(
                lambda: Connection(pool, gather_seconds=self._gather_seconds),
                sock=await socks.connect(proxy, address, origin.port),
                ssl=self._tls() if secure else None,
                server_hostname=name,
            )
            return connection
        if proxy is not None and (secure or self._pinned):
            return await self._open_tunnel(pool, origin, address, proxy)
        host, port = (address, origin.port) if proxy is None else (proxy.host, proxy.port)
        if proxy is not None:
            secure, name = proxy.is_secure, proxy.host if proxy.is_secure else None
        _, connection = await loop.create_connection(
            lambda: Connection(pool, gather_seconds=self._gather_seconds),
            host,
            port,
            ssl=self._tls() if secure else None,
            server_hostname=name,
            **_race(loop, host),
        )
        return connection

    async def _open_tunnel(
        self, pool: "_Pool", origin: Origin, address: str, proxy: Proxy
    ) -> Connection:
        loop = asyncio.get_running_loop()
        authority = f"[{address}]" if ":" in address else address
        transport, tunnel = await loop.create_connection(
            lambda: Tunnel(proxy, f"{authority}:{origin.port}"),
            proxy.host,
            proxy.port,
            ssl=self._tls() if proxy.is_secure else None,
            server_hostname=proxy.host if proxy.is_secure else None,
        )
        connection = Connection(pool, gather_seconds=self._gather_seconds)
        try:
            await tunnel.opened
            if origin.scheme == "http":
                transport.set_protocol(connection)
                connection.connection_made(transport)
                return connection
            secured = await loop.start_tls(
                transport, connection, self._tls(), server_hostname=origin.host
            )
            assert secured is not None
            connection.connection_made(secured)
        finally:
            if not connection.is_open:
                transport.abort()
        return connection


class _Pool:
    """The connections to one origin; the most recently used idle one is taken first."""

    def __init__(self, idle_seconds_max: float) -> None:
        self._idle_seconds_max = idle_seconds_max
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    def add(self, connection: Connection) -> None:
        if connection.is_open:
            self._all.add(connection)

    def take(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    def idle(self, connection: Connection) -> None:
        if len(self._idle) >= IDLE_CONNECTIONS_MAX or connection not in self._all:
            connection.abort()
            return
        self._idle.append(connection)
        connection.close_after(self._idle_seconds_max)

    def lost(self, connection: Connection) -> None:
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def aclose(self) -> None:
        closed = [connection.gone for connection in self._all]
        for connection in self._all:
            connection.abort()
        await asyncio.gather(*closed)


@functools.lru_cache(maxsize=64)
def parse_target(url: str) -> Target:
    """Split a URL. Raises TransportError for one that cannot be requested."""
    try:
        split = urlsplit(url)
        port, host = split.port, host_name.to_ascii(split.hostname or "")
    except ValueError as error:
        raise TransportError(f"not a URL: {error}") from error
    if split.scheme not in _PORTS or not host:
        raise TransportError("the URL must begin with http:// or https:// and name a host")
    if split.username is not None:
        raise TransportError("the URL must not hold a user name or password")
    path = quote(split.path or "/", safe=_PATH_CHARS)
    query = f"?{quote(split.query, safe=_PATH_CHARS)}" if split.query else ""
    return Target(Origin(split.scheme, host, port or _PORTS[split.scheme]), path + query)


class _Race(TypedDict, total=False):
    """Options of a connection that tries several addresses."""

    happy_eyeballs_delay: float


def _race(loop: asyncio.AbstractEventLoop, host: str) -> _Race:
    # Cancelling a race of addresses may leak a socket (CPython); one address needs none.
    if http_proxy.is_address(host) or not isinstance(loop, asyncio.BaseEventLoop):
        # Other event loops, such as uvloop's, do not know the option.
        return {}
    return {"happy_eyeballs_delay": _ADDRESS_FALLBACK_SECONDS}


async def _exchange(
    pool: _Pool, connect: Callable[[], Awaitable[Connection]], pieces: tuple[bytes, ...]
) -> tuple[Connection, Head]:
    """Send a request and wait for the head, over a kept connection if one still works."""
    kept = pool.take()
    if kept is not None:
        try:
            return kept, await _send(kept, pieces)
        except TransportError:
            # The server may have closed it just before the request; then nothing was processed.
            if kept.answered:
                raise
    fresh = await connect()
    return fresh, await _send(fresh, pieces)


async def _send(connection: Connection, pieces: tuple[bytes, ...]) -> Head:
    answered = False
    try:
        connection.send(pieces)
        head = await connection.head()
        answered = True
        return head
    finally:
        if not answered:
            connection.abort()


def _head(request: HttpRequest, target: Target, proxy: Proxy | None) -> bytes:
    origin, path = target.origin, target.path
    headers = {
        "host": origin.authority,
        "user-agent": _USER_AGENT,
        # Compression would delay the small pieces of a stream.
        "accept-encoding": "identity",
        **{name.lower(): value for name, value in request.headers.items()},
    }
    if request.body:
        headers["content-length"] = str(sum(map(len, request.body)))
    if proxy is not None and proxy.speaks_http and origin.scheme == "http":
        path = f"http://{origin.authority}{path}"
        if proxy.authorization is not None:
            headers["proxy-authorization"] = proxy.authorization
    lines = [f"{request.method} {path} HTTP/1.1"]
    sent = "".join((*headers, *headers.values()))
    if _BAD_HEADER.search(sent) or not sent.isascii():
        for name, value in headers.items():
            _check_header(name, value)
    lines += (f"{name}: {value}" for name, value in headers.items())
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _check_header(name: str, value: str) -> None:
    if _BAD_HEADER.search(name) or _BAD_HEADER.search(value) or not value.isascii():
        # The value may be secret, so the message does not contain it.
        raise TransportError(f"the value of header {name[:60]!r} cannot be sent")
