"""Answers as bytes: envelopes around JSON, errors, compression, and sending them.

Stored JSON is not decoded to be sent. An answer has all its headers here, except those that every
answer of the app carries (`guard`) and those that every HTTP message carries (`http.exchange`).
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from typing import Final

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern
from perdure.protocol import errors
from perdure.schema import codec, redaction
from perdure.schema.errors import (
    DomainError,
    McpServerNotFoundError,
    MethodNotAllowedError,
    UnauthorizedError,
)
from perdure.schema.files.fs import FileContent
from perdure.schema.value import Value
from perdure.server.http.asgi import Header, Send
from perdure.server.http.message import RETRY_SOON
from perdure.server.http.websocket import Upgrade
from perdure.server.results import Encoded

JSON: Final[Header] = (b"content-type", b"application/json")
CHALLENGE: Final[Header] = (b"www-authenticate", b'Basic realm="Secure Area"')
_GZIP: Final[Header] = (b"content-encoding", b"gzip")
_GZIP_WINDOW: Final = 31
_REFUSES_GZIP: Final = lazy_pattern(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


class Response(Value):
    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = (JSON,)

    async def send_to(
        self, send: Send, common: tuple[Header, ...], *, is_head: bool, is_upgrade: bool
    ) -> None:
        """Send it; `is_upgrade` when it refuses a WebSocket."""
        headers = [*self.headers, *common]
        if self.status != 204:
            headers.append((b"content-length", b"%d" % len(self.body)))
        start = "websocket.http.response.start" if is_upgrade else "http.response.start"
        await send({"type": start, "status": self.status, "headers": headers})
        body = "websocket.http.response.body" if is_upgrade else "http.response.body"
        await send({"type": body, "body": b"" if is_head else self.body, "more_body": False})


class Stream(Value):
    """An answer that is written as it happens. `run` sends everything after the head."""

    headers: tuple[Header, ...]
    run: Callable[[Send], Awaitable[None]]

    async def send_to(self, send: Send, common: tuple[Header, ...], *, is_head: bool) -> None:
        headers = [*self.headers, *common]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if is_head:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await self.run(send)


Reply = Response | Stream | Upgrade

NO_CONTENT: Final = Response(204, b"", ())
_FILE_HEADERS: Final[tuple[Header, ...]] = (
    (b"accept-ranges", b"bytes"),
    # A browser must treat every file as data: not as a page, not as a script, without guessing.
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cache-control", b"no-store"),
)


def bare(value: object) -> Response:
    return Response(200, as_json(value))


def data(value: object) -> Response:
    return Response(200, b'{"data":' + as_json(value) + b"}")


def located(location: object, value: object) -> Response:
    return Response(
        200, b"".join((b'{"location":', as_json(location), b',"data":', as_json(value), b"}"))
    )


def page(items: tuple[bytes, ...], *, previous: str | None, next: str | None) -> Response:
    links = {"previous": previous, "next": next}
    cursor = codec.encode({side: text for side, text in links.items() if text is not None})
    return Response(200, b"".join((b'{"data":[', b",".join(items), b'],"cursor":', cursor, b"}")))


def history(items: tuple[bytes, ...], *, has_more: bool) -> Response:
    flag = b"true" if has_more else b"false"
    return Response(200, b"".join((b'{"data":[', b",".join(items), b'],"hasMore":', flag, b"}")))


def content(file: FileContent) -> Response:
    headers = ((b"content-type", file.content_type.encode()), *_FILE_HEADERS)
    if len(file.data) == file.size:
        return Response(200, file.data, headers)
    last = file.offset + len(file.data) - 1
    span = b"bytes %d-%d/%d" % (file.offset, last, file.size)
    return Response(206, file.data, (*headers, (b"content-range", span)))


def failure(error: DomainError, *, challenges: bool = True) -> Response:
    """`challenges`: a browser may ask its user for the password itself."""
    headers: list[Header] = [JSON]
    if isinstance(error, UnauthorizedError) and challenges:
        headers.append(CHALLENGE)
    if isinstance(error, MethodNotAllowedError):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if errors.is_momentary(error):
        headers.append(RETRY_SOON)
    told = error.wire()
    if isinstance(message := told.get("message"), str):
        # It may quote a configuration, or what a program or another server said.
        told["message"] = redaction.redact_message(message)
    return Response(errors.status_of(error), codec.encode(told), tuple(headers))


def v1_failure(error: DomainError) -> Response:
    """The answer to a V1 request that failed: a name and a message."""
    status = errors.status_of(error)
    if isinstance(error, McpServerNotFoundError):
        # The one error that V1 declares in a form of its own.
        told = {"_tag": error.tag, "name": error.name, "message": error.message}
        return Response(status, codec.encode(told), (JSON,))
    name = {400: "BadRequest", 404: "NotFoundError"}.get(status, "UnknownError")
    data = {"message": redaction.redact_message(error.message)}
    headers = (JSON, RETRY_SOON) if errors.is_momentary(error) else (JSON,)
    return Response(status, codec.encode({"name": name, "data": data}), headers)


def as_json(value: object) -> bytes:
    """The JSON of a value; what is Encoded is JSON already."""
    return value.json if isinstance(value, Encoded) else codec.encode(value)


async def compressed(response: Response, accept_encoding: bytes) -> Response:
    """`response` as gzip where the client accepts it and it is large enough to be worth it."""
    size = len(response.body)
    # The range of a part counts bytes of the file, so a part is not compressed.
    if response.status == 206 or size < limits.COMPRESS_BYTES_MIN or _GZIP in response.headers:
        return response
    if not accepts_gzip(accept_encoding):
        return response
    if size <= limits.COMPRESS_INLINE_BYTES_MAX:
        body = _gzip(response.body)
    else:
        body = await asyncio.to_thread(_gzip, response.body)
    return Response(response.status, body, (*response.headers, _GZIP))


def accepts_gzip(accept_encoding: bytes) -> bool:
    return b"gzip" in accept_encoding and _REFUSES_GZIP.search(accept_encoding) is None


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(body) + compressor.flush()
