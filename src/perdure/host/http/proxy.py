"""Chooses the HTTP proxy of a request, and opens tunnels through it for HTTPS.

The usual environment variables decide: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in lower
case first. Loopback addresses are never reached through a proxy.
"""

import asyncio
import base64
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from perdure.host.http.response import HEAD_BYTES_MAX
from perdure.net import loopback
from perdure.net.transport import TransportError
from perdure.schema.value import Value

_END_OF_HEAD: Final = b"\r\n\r\n"


class Proxy(Value):
    host: str
    port: int
    authorization: str | None = None

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


class ProxyRules(Value):
    by_scheme: Mapping[str, Proxy]
    exceptions: tuple[str, ...] = ()

    def proxy_for(self, scheme: str, host: str) -> Proxy | None:
        proxy = self.by_scheme.get(scheme)
        if proxy is None or loopback.is_loopback_domain(host) or self._excepted(host.lower()):
            return None
        return proxy

    def _excepted(self, host: str) -> bool:
        return any(rule in ("*", host) or host.endswith(f".{rule}") for rule in self.exceptions)


NO_PROXIES: Final = ProxyRules({})


def from_environment(environment: Mapping[str, str]) -> ProxyRules:
    """The proxy rules in `environment`; a value that is not a proxy URL is ignored."""
    by_scheme: dict[str, Proxy] = {}
    for scheme in ("http", "https"):
        value = _first(environment, f"{scheme}_proxy") or _first(environment, "all_proxy")
        proxy = _parse(value)
        if proxy is not None:
            by_scheme[scheme] = proxy
    listed = _first(environment, "no_proxy").lower().split(",")
    names = (name.strip().removeprefix("*.").removeprefix(".") for name in listed)
    return ProxyRules(by_scheme, tuple(name for name in names if name))


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
        self._request = _connect_request(proxy, authority)
        self._head = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if _END_OF_HEAD in self._head:
            self._settle(_refusal(self._head))
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


def _connect_request(proxy: Proxy, authority: str) -> bytes:
    lines = [f"CONNECT {authority} HTTP/1.1", f"host: {authority}"]
    if proxy.authorization is not None:
        lines.append(f"proxy-authorization: {proxy.authorization}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def _refusal(head: bytes) -> str | None:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if words[0].startswith(b"HTTP/1.") and len(words) > 1 and words[1][:1] == b"2":
        return None
    return f"the proxy refused: {b' '.join(words[1:])[:80].decode('latin-1')}"


def _parse(value: str) -> Proxy | None:
    try:
        url = urlsplit(value if "://" in value else f"http://{value}")
        port = url.port
    except ValueError:
        return None
    if url.scheme != "http" or not url.hostname:
        return None
    return Proxy(url.hostname, port or 80, _authorization(url))


def _authorization(url: SplitResult) -> str | None:
    if url.username is None:
        return None
    pair = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _first(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""
