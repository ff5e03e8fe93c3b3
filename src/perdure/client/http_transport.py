"""The transport over a network: the one module of the client that uses the HTTP library.

Connections are kept and used again. Nothing is retried and no redirect is followed.

Invariant: no exception of the HTTP library leaves this module.
"""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

import httpx2

from perdure.client.errors import ClientError
from perdure.client.transport import Request, Response
from perdure.net.loopback import is_loopback_url

_CONNECT_SECONDS_MAX: Final = 10
_WRITE_SECONDS_MAX: Final = 60


class HttpTransport:
    def __init__(self, base_url: str, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._base_url = base_url
        self._http = httpx2.AsyncClient(
            transport=transport,
            verify=_certificates(base_url),
            # Two processes of one machine need no proxy between them.
            trust_env=not is_loopback_url(base_url),
        )

    async def send(self, outgoing: Request) -> Response:
        timeout = httpx2.Timeout(
            connect=_CONNECT_SECONDS_MAX,
            read=outgoing.silence_seconds_max,
            write=_WRITE_SECONDS_MAX,
            pool=_CONNECT_SECONDS_MAX,
        )
        with _as_client_error():
            request = self._http.build_request(
                outgoing.method,
                self._base_url + outgoing.target,
                content=outgoing.body,
                headers=outgoing.headers,
                timeout=timeout,
            )
            return _HttpResponse(await self._http.send(request, stream=True))

    async def aclose(self) -> None:
        await self._http.aclose()


def _certificates(url: str) -> ssl.SSLContext | bool:
    """The machine's certificate authorities, or none for a server of this machine without TLS.

    Loading the authorities takes longer than a whole call to a server of this machine.
    """
    without_tls = is_loopback_url(url) and urlsplit(url).scheme == "http"
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if without_tls else True


class _HttpResponse:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def content_type(self) -> str:
        return self._response.headers.get("content-type", "")

    async def read(self) -> bytes:
        with _as_client_error():
            return await self._response.aread()

    async def chunks(self) -> AsyncGenerator[bytes]:
        pieces = self._response.aiter_bytes()
        while True:
            with _as_client_error():
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _as_client_error() -> Generator[None]:
    try:
        yield
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        message = str(error) or type(error).__name__
        if isinstance(error, httpx2.ConnectError):
            url = error.request.url
            message = f"no connection to {url.scheme}://{url.netloc.decode('ascii')}: {message}"
        raise ClientError("transport", message) from error
