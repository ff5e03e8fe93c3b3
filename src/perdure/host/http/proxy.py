"""Chooses the proxy of a request, and opens tunnels through it for HTTPS.

The usual environment variables decide: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in lower
case first. Proxies over HTTP, HTTPS and SOCKS (host.http.socks) are supported. Loopback addresses
are never reached through a proxy.

Invariant: a proxy that is asked for and cannot be used fails the request; it is never bypassed.
"""

import asyncio
import base64
import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from perdure.host.http.response import HEAD_BYTES_MAX
from perdure.net import host_name, loopback
from perdure.net.transport import TransportError
from perdure.schema.value import Value

_END_OF_HEAD: Final = b"\r\n\r\n"
_PORTS: Final = {
    "http": 80,
    "https": 443,
    "socks4": 1080,
    "socks4a": 1080,
    "socks5": 1080,
    "socks5h": 1080,
}
"""The supported kinds of proxy, with their usual ports."""
_PORT_DIGITS_MAX: Final = 5
_OF_THIS_MACHINE: Final = frozenset({"169.254.169.254", "metadata.google.internal"})
"""Metadata servers: each machine has its own, and a proxy would ask that of the proxy."""


class Proxy(Value):
    host: str
    port: int
    authorization: str | None = None
    scheme: str = "http"
    login: tuple[str, str] | None = None
    """User and password, for SOCKS."""

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port})"

    @property
    def speaks_http(self) -> bool:
        """Whether it forwards plain requests and opens tunnels; others only connect."""
        return self.scheme in ("http", "https")

    @property
    def is_secure(self) -> bool:
        """Whether the connection to the proxy itself is TLS."""
        return self.scheme == "https"


class UnusableProxy(Value):
    """A proxy that is asked for and cannot be used. Going past it could leak what it should see."""

    reason: str


class Exemption(Value, kw_only=True):
    """One entry of NO_PROXY: a name with all below it, or a network; a port if it names one."""

    name: str = ""
    """Empty if it is a network."""
    network: str = ""
    port: int | None = None

    def covers(self, host: str, port: int) -> bool:
        if self.port not in (None, port):
            return False
        if not self.network:
            return self.name in ("*", host) or host.endswith(f".{self.name}")
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(self.network)
        except ValueError:
            return False


class ProxyRules(Value):
    by_scheme: Mapping[str, Proxy | UnusableProxy]
    exceptions: tuple[Exemption, ...] = ()

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy of a request. Raises TransportError if it cannot be used."""
        proxy = self.by_scheme.get(scheme)
        name = host.lower().removesuffix(".")
        if proxy is None or loopback.is_loopback_domain(name) or name in _OF_THIS_MACHINE:
            return None
        if self._excepted(name, port):
            return None
        if isinstance(proxy, UnusableProxy):
            raise TransportError(proxy.reason)
        return proxy

    def _excepted(self, host: str, port: int) -> bool:
        return any(rule.covers(host, port) for rule in self.exceptions)


NO_PROXIES: Final = ProxyRules({})


def from_environment(environment: Mapping[str, str]) -> ProxyRules:
    """The proxy rules in `environment`."""
    by_scheme: dict[str, Proxy | UnusableProxy] = {}
    for scheme in ("http", "https"):
        for name in (f"{scheme}_proxy", "all_proxy"):
            if value := _first(environment, name):
                by_scheme[scheme] = _parse(value, name.upper())
                break
    listed = _first(environment, "no_proxy").lower().replace(",", " ").split()
    return ProxyRules(by_scheme, tuple(map(_exemption, listed)))


def is_address(host: str) -> bool:
    """Whether `host` is an IP address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Tunnel(asyncio.Protocol):
    """Sends CONNECT to a proxy; when `opened` is done, the caller takes over the connection."""

    def __init__(self, proxy: Proxy, authority: str) -> None:
        self._request = connect_request(proxy, authority)
        self._head = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of other event loops are not instances of the class.
        cast("asyncio.Transport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if _END_OF_HEAD in self._head:
            self._settle(find_refusal(self._head))
        elif len(self._head) > HEAD_BYTES_MAX:
            self._settle("the proxy's answer is not HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle("the proxy closed the connection")

    def _settle(self, refusal: str | None) -> None:
        if self.opened.done():
            return
        if refusal is None:
            self.opened.set_result(None)
        else:
            self.opened.set_exception(TransportError(refusal))


def connect_request(proxy: Proxy, authority: str) -> bytes:
    """The request to a proxy that opens a tunnel."""
    lines = [f"CONNECT {authority} HTTP/1.1", f"host: {authority}"]
    if proxy.authorization is not None:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def find_refusal(head: bytes) -> str | None:
    """Why the proxy's answer opens no tunnel; None if it does."""
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if words[0].startswith(b"HTTP/1.") and len(words) > 1 and words[1][:1] == b"2":
        return None
    return f"the proxy refused: {b' '.join(words[1:])[:80].decode('latin-1')}"


def _parse(value: str, variable: str) -> Proxy | UnusableProxy:
    # The value may hold a password, so no message quotes it.
    try:
        url = urlsplit(value if "://" in value else f"http://{value}")
        port, host = url.port, host_name.to_ascii(url.hostname or "")
    except ValueError:
        return UnusableProxy(f"{variable} is not the address of a proxy")
    if url.scheme not in _PORTS:
        schemes = ", ".join(_PORTS)
        return UnusableProxy(f"{variable} names a kind of proxy that is not one of {schemes}")
    if not host:
        return UnusableProxy(f"{variable} does not name a host")
    login = None
    if url.username is not None:
        login = unquote(url.username), unquote(url.password or "")
    authorization = None if login is None else _authorization(*login)
    return Proxy(host, port or _PORTS[url.scheme], authorization, url.scheme, login)


def _exemption(text: str) -> Exemption:
    """One entry: `name`, `.name`, `*.name`, an address, a network, each with or without a port."""
    try:
        return Exemption(network=str(ipaddress.ip_network(text.strip("[]"), strict=False)))
    except ValueError:
        pass
    host, colon, port = text.rpartition(":")
    if not (colon and port.isdecimal() and len(port) <= _PORT_DIGITS_MAX):
        host, port = text, ""
    number = int(port) if port else None
    try:
        network = str(ipaddress.ip_network(host.strip("[]"), strict=False))
    except ValueError:
        with suppress(UnicodeError):
            host = host_name.to_ascii(host)
        name = host.removeprefix("*.").strip(".")
        return Exemption(name=name, port=number)
    return Exemption(network=network, port=number)


def _authorization(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _first(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""
