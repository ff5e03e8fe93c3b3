"""The HTTP client behind every model call: HTTP/1.1 over asyncio and httptools, connections kept.

A general client costs about 2.4 ms of processor time for a request and 20 us for a chunk, more than
a whole turn may cost here; this one does what model calls need, for a tenth of that. No redirects,
no cookies, and one retry only: a kept connection that turns out to be closed is replaced, as long
as not one byte of the response has come.

Invariant: leaving `open` by an error or a cancellation closes its connection.
"""

import asyncio
import functools
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final
from urllib.parse import quote, urlsplit

from perdure.host.http import body
from perdure.host.http import proxy as http_proxy
from perdure.host.http.connection import Connection, Head
from perdure.host.http.proxy import Proxy, ProxyRules, Tunnel
from perdure.net.transport import HttpRequest, HttpResponse, TransportError
from perdure.schema.value import Value
from perdure.version import __version__

CONNECT_SECONDS_MAX: Final = 30
IDLE_SECONDS_MAX: Final = 60
IDLE_CONNECTIONS_MAX: Final = 8
_ADDRESS_FALLBACK_SECONDS: Final = 0.25
_PORTS: Final = {"http": 80, "https": 443}
_PATH_CHARS: Final = "/%:@!$&'()*+,;=~-._?"
_BAD_HEADER: Final = re.compile(r"[\x00\r\n]")
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
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        connect_seconds_max: float = CONNECT_SECONDS_MAX,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
        pinned: Sequence[str] = (),
        inflation_max: int | None = None,
    ) -> None:
        """With `pinned`, every connection ends at one of these addresses, tried in their order.

        No name is looked up then, here or by a proxy; the server is still asked, and its
        certificate checked, under the name in the URL.
        """
        self._proxies = proxies
        self._tls = functools.cache(tls)
        self._connect_seconds_max = connect_seconds_max
        self._idle_seconds_max = idle_seconds_max
        self._pinned = pinned
        self._inflation_max = inflation_max
        self._pools: dict[Origin, _Pool] = {}

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        return self._open(request)

    async def aclose(self) -> None:
        """Close every connection, also those in use."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()

    @asynccontextmanager
    async def _open(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        target = parse_target(request.url)
        proxy = self._proxies.proxy_for(target.origin.scheme, target.origin.host)
        pieces = (_head(request, target, None if self._pinned else proxy), *request.body)
        pool = self._pool(target.origin)
        seconds = request.connect_seconds_max
        dialing = functools.partial(
            self._connect,
            pool,
            target.origin,
            proxy,
            seconds=self._connect_seconds_max if seconds is None else seconds,
        )
        connection, (status, headers) = await _answered(pool, dialing, pieces)
        left = False
        try:
            encoding = headers.get("content-encoding", "")
            chunks = body.body(connection.read, encoding, inflation_max=self._inflation_max)
            yield HttpResponse(status=status, headers=headers, chunks=chunks)
            connection.leave()
            left = True
        finally:
            if not left:
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
            return await self._reach(pool, origin, origin.host, proxy)
        share = self._connect_seconds_max / len(self._pinned)
        for address in self._pinned[:-1]:
            try:
                async with asyncio.timeout(share):
                    return await self._reach(pool, origin, address, proxy)
            except (OSError, TransportError):
                # One address of several may well be out of reach.
                continue
        return await self._reach(pool, origin, self._pinned[-1], proxy)

    async def _reach(
        self, pool: "_Pool", origin: Origin, address: str, proxy: Proxy | None
    ) -> Connection:
        """A connection that ends at `address`, the origin's name or one of its numbers."""
        loop = asyncio.get_running_loop()
        if proxy is not None and (origin.scheme == "https" or self._pinned):
            return await self._tunnelled(pool, origin, address, proxy)
        host, port = (address, origin.port) if proxy is None else (proxy.host, proxy.port)
        secure = origin.scheme == "https"
        _, connection = await loop.create_connection(
            lambda: Connection(pool),
            host,
            port,
            ssl=self._tls() if secure else None,
            server_hostname=origin.host if secure else None,
            # A race that is cancelled may leave a socket open (CPython). One address needs no race.
            happy_eyeballs_delay=None if http_proxy.is_address(host) else _ADDRESS_FALLBACK_SECONDS,
        )
        return connection

    async def _tunnelled(
        self, pool: "_Pool", origin: Origin, address: str, proxy: Proxy
    ) -> Connection:
        loop = asyncio.get_running_loop()
        authority = f"[{address}]" if ":" in address else address
        transport, tunnel = await loop.create_connection(
            lambda: Tunnel(proxy, f"{authority}:{origin.port}"), proxy.host, proxy.port
        )
        connection = Connection(pool)
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
    """The connections to one origin; the latest idle one is used first."""

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
        gone = [connection.gone for connection in self._all]
        for connection in self._all:
            connection.abort()
        await asyncio.gather(*gone)


@functools.lru_cache(maxsize=64)
def parse_target(url: str) -> Target:
    """Split a URL; raises TransportError for one that cannot be requested."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise TransportError(f"not a URL: {error}") from error
    if split.scheme not in _PORTS or not split.hostname:
        raise TransportError("the URL must begin with http:// or https:// and name a host")
    if split.username is not None:
        raise TransportError("the URL must not hold a user name or password")
    path = quote(split.path or "/", safe=_PATH_CHARS)
    query = f"?{quote(split.query, safe=_PATH_CHARS)}" if split.query else ""
    return Target(Origin(split.scheme, split.hostname, port or _PORTS[split.scheme]), path + query)


async def _answered(
    pool: _Pool, connect: Callable[[], Awaitable[Connection]], pieces: tuple[bytes, ...]
) -> tuple[Connection, Head]:
    """The answer, over a kept connection if there is one that still works."""
    kept = pool.take()
    if kept is not None:
        try:
            return kept, await _ask(kept, pieces)
        except TransportError:
            # The provider may have closed it just as the request left; nothing was processed.
            if kept.answered:
                raise
    fresh = await connect()
    return fresh, await _ask(fresh, pieces)


async def _ask(connection: Connection, pieces: tuple[bytes, ...]) -> Head:
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
        # Compression would hold back the small pieces that a stream is made of.
        "accept-encoding": "identity",
        **{name.lower(): value for name, value in request.headers.items()},
    }
    if request.body:
        headers["content-length"] = str(sum(map(len, request.body)))
    if proxy is not None and origin.scheme == "http":
        path = f"http://{origin.authority}{path}"
        if proxy.authorization is not None:
            headers["proxy-authorization"] = proxy.authorization
    lines = [f"{request.method} {path} HTTP/1.1"]
    lines += (_header_line(name, value) for name, value in headers.items())
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _header_line(name: str, value: str) -> str:
    if _BAD_HEADER.search(name) or _BAD_HEADER.search(value) or not value.isascii():
        # Its value may be a secret and stays out of the message.
        raise TransportError(f"the value of header {name[:60]!r} cannot be sent")
    return f"{name}: {value}"
