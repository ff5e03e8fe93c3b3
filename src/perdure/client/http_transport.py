"""Calls over a network, by way of an HTTP library that nobody else of the client knows.

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
from perdure.net import loopback

_CONNECT_SECONDS_MAX: Final = 10
_WRITE_SECONDS_MAX: Final = 60


class HttpTransport:
    def __init__(self, base_url: str, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._base_url = base_url
        self._http = httpx2.AsyncClient(
            transport=transport,
            verify=_trusted(base_url),
            # A proxy has no business between two processes of one machine.
            trust_env=not loopback.is_loopback_url(base_url),
        )

    async def send(self, outgoing: Request) -> Response:
        timeout = httpx2.Timeout(
            connect=_CONNECT_SECONDS_MAX,
            read=outgoing.silence_seconds_max,
            write=_WRITE_SECONDS_MAX,
            pool=_CONNECT_SECONDS_MAX,
        )
        with _told_apart():
            request = self._http.build_request(
                outgoing.method,
                self._base_url + outgoing.target,
                content=outgoing.body,
                headers=outgoing.headers,
                timeout=timeout,
            )
            return _HttpIncoming(await self._http.send(request, stream=True))

    async def aclose(self) -> None:
        await self._http.aclose()


def _trusted(url: str) -> ssl.SSLContext | bool:
    """Whose certificates are taken: the machine's authorities, or nobody's where none are shown.

    Reading the authorities takes longer than a whole call to a server of this machine.
    """
    shows_none = loopback.is_loopback_url(url) and urlsplit(url).scheme == "http"
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if shows_none else True


class _HttpIncoming:
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def content_type(self) -> str:
        return self._response.headers.get("content-type", "")

    async def read(self) -> bytes:
        with _told_apart():
            return await self._response.aread()

    async def chunks(self) -> AsyncGenerator[bytes]:
        pieces = self._response.aiter_bytes()
        while True:
            with _told_apart():
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _told_apart() -> Generator[None]:
    try:
        yield
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        message = str(error) or type(error).__name__
        raise ClientError("transport", message) from error
