"""Fetches web pages from untrusted servers. Implements ports.WebPages.

Each hop of a redirect is parsed, resolved and checked, and the connection goes to a checked
address: the name is not resolved again, which prevents DNS rebinding. The server must have a
certificate for its name. No cookies, no credentials, no keep-alive.

Invariant: a server cannot cost more bytes or seconds than the request allows.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

from perdure.core import limits
from perdure.core.web import address as web_address
from perdure.core.web.address import WebAddress, WebAddressError
from perdure.host.http import proxy
from perdure.host.http.client import HttptoolsTransport
from perdure.host.http.proxy import ProxyRules
from perdure.host.http.tls import system_tls
from perdure.net.transport import HttpRequest, HttpResponse, TransportError
from perdure.ports import WebFetchError, WebPage, WebRequest
from perdure.schema.value import Value
from perdure.version import __version__

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host; raises OSError."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OWN_NAME: Final = f"perdure/{__version__}"
# Many sites refuse clients that do not look like a browser.
_BROWSER_NAME: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/143.0.0.0 Safari/537.36"
)


async def system_resolve(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class _Redirect(Value):
    location: str


class WebClient:
    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        proxies: ProxyRules = proxy.NO_PROXIES,
        tls: Callable[[], ssl.SSLContext] = system_tls,
    ) -> None:
        self._resolve = resolve
        self._proxies = proxies
        self._tls = tls

    async def fetch(self, request: WebRequest) -> WebPage:
        try:
            async with asyncio.timeout(request.seconds_max):
                return await self._fetch(request)
        except TimeoutError as error:
            raise WebFetchError(f"No answer within {request.seconds_max:g} s") from error
        except (WebAddressError, TransportError) as error:
            raise WebFetchError(_sentence(str(error))) from error

    async def _fetch(self, request: WebRequest) -> WebPage:
        address = original = web_address.parse(request.url)
        for _ in range(limits.WEB_REDIRECTS_MAX + 1):
            answer = await self._get(address, request)
            if isinstance(answer, WebPage):
                return WebPage(
                    url=request.url if address is original else answer.url,
                    content_type=answer.content_type,
                    body=answer.body,
                )
            address = web_address.follow(address, answer.location)
        raise WebFetchError(f"The page redirects more than {limits.WEB_REDIRECTS_MAX} times")

    async def _get(self, address: WebAddress, request: WebRequest) -> WebPage | _Redirect:
        pinned = await self._destinations(address, request.allowed_hosts)
        transport = HttptoolsTransport(
            proxies=self._proxies,
            tls=self._tls,
            pinned=pinned,
            inflation_max=limits.WEB_INFLATION_MAX,
        )
        async with aclosing(transport):
            try:
                return await _request(transport, address, request.accept, _BROWSER_NAME)
            except _ChallengedError:
                return await _request(transport, address, request.accept, _OWN_NAME)

    async def _destinations(self, address: WebAddress, allowed: Sequence[str]) -> Sequence[str]:
        """The checked addresses to connect to; none if a proxy resolves an allowed name."""
        is_allowed = web_address.is_allowed(address, allowed)
        if is_allowed and self._uses_proxy(address):
            return ()
        if address.names_this_machine and not is_allowed:
            raise WebFetchError(_refusal(address))
        found = await self._addresses(address)
        if not is_allowed and not all(map(web_address.is_global, found)):
            raise WebFetchError(_refusal(address))
        return found[: limits.WEB_ADDRESSES_TRIED_MAX]

    def _uses_proxy(self, address: WebAddress) -> bool:
        return self._proxies.proxy_for(address.scheme, address.host, address.port) is not None

    async def _addresses(self, address: WebAddress) -> Sequence[str]:
        if address.number is not None:
            return (address.host,)
        try:
            found = await self._resolve(address.host, address.port)
        except (OSError, UnicodeError) as error:
            raise WebFetchError(f"{address.host} cannot be found: {error}") from error
        if not found:
            raise WebFetchError(f"{address.host} cannot be found: it has no address")
        return found


class _ChallengedError(Exception):
    """A bot check rejected the browser-like user agent."""


async def _request(
    transport: HttptoolsTransport, address: WebAddress, accept: str, name: str
) -> WebPage | _Redirect:
    headers = {
        "accept": accept,
        "accept-encoding": "gzip, deflate",
        "accept-language": "en-US,en;q=0.9",
        "user-agent": name,
        "connection": "close",
    }
    request = HttpRequest(url=address.url, headers=headers, body=(), method="GET")
    async with transport.open(request) as answer:
        location = answer.headers.get("location")
        if answer.status in _REDIRECTS and location:
            return _Redirect(_decode_header(location))
        if _is_challenge(answer) and name != _OWN_NAME:
            raise _ChallengedError
        if not 200 <= answer.status < 300:
            raise WebFetchError(f"The server answered {_status(answer.status)}")
        return WebPage(
            url=address.url,
            content_type=answer.headers.get("content-type", ""),
            body=await _body(answer),
        )


async def _body(answer: HttpResponse) -> bytes:
    declared = answer.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.WEB_PAGE_BYTES_MAX:
        raise WebFetchError(_too_large())
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.chunks:
        size += len(piece)
        if size > limits.WEB_PAGE_BYTES_MAX:
            raise WebFetchError(_too_large())
        pieces.append(piece)
    return b"".join(pieces)


def _is_challenge(answer: HttpResponse) -> bool:
    return answer.status == 403 and answer.headers.get("cf-mitigated", "") == "challenge"


def _decode_header(header: str) -> str:
    """Decode UTF-8 that servers send in a header, which was decoded as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeDecodeError:
        return header


def _refusal(address: WebAddress) -> str:
    return (
        f"{address.authority} is not on the public internet. The user can allow it: "
        f'"experimental": {{"webfetch": {{"allowed_hosts": ["{address.authority}"]}}}} '
        "in their own configuration."
    )


def _too_large() -> str:
    return f"The page is larger than {limits.WEB_PAGE_BYTES_MAX} bytes"


def _status(code: int) -> str:
    from http import HTTPStatus

    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
