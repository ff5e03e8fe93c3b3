"""Answers as bytes: envelopes built around JSON that is already written, errors, compression.

Nothing stored is decoded to be sent. An answer is complete here, headers included, except for what
every answer of the app carries (`app`) and what every HTTP message carries (`http_exchange`).
"""

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Final

from perdure.core import limits
from perdure.protocol import errors
from perdure.schema import codec
from perdure.schema.errors import DomainError, MethodNotAllowedError, UnauthorizedError
from perdure.schema.files.fs import FileContent
from perdure.schema.page import Page
from perdure.schema.value import Value
from perdure.server.http.asgi import Header, Send
from perdure.server.http.websocket import Upgrade

JSON: Final[Header] = (b"content-type", b"application/json")
CHALLENGE: Final[Header] = (b"www-authenticate", b'Basic realm="Secure Area"')
RETRY_SOON: Final[Header] = (b"retry-after", b"1")
_GZIP: Final[Header] = (b"content-encoding", b"gzip")
_GZIP_WINDOW: Final = 31
_REFUSES_GZIP: Final = re.compile(rb"gzip\s*;\s*q=0(\.0*)?\s*(,|$)")


class Response(Value):
    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = (JSON,)


class Stream(Value):
    """An answer that is written as it happens. `run` sends everything after the head."""

    headers: tuple[Header, ...]
    run: Callable[[Send], Awaitable[None]]


Reply = Response | Stream | Upgrade

NO_CONTENT: Final = Response(204, b"", ())
_AS_IT_IS: Final[tuple[Header, ...]] = (
    (b"accept-ranges", b"bytes"),
    # Whatever a file holds, it is data: no page of its own, no scripts, no guessing.
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


def page(page: Page[bytes]) -> Response:
    links = {"previous": page.previous, "next": page.next}
    cursor = codec.encode({side: text for side, text in links.items() if text is not None})
    return Response(
        200, b"".join((b'{"data":[', b",".join(page.items), b'],"cursor":', cursor, b"}"))
    )


def history(items: tuple[bytes, ...], *, has_more: bool) -> Response:
    flag = b"true" if has_more else b"false"
    return Response(200, b"".join((b'{"data":[', b",".join(items), b'],"hasMore":', flag, b"}")))


def content(file: FileContent) -> Response:
    headers = ((b"content-type", file.content_type.encode()), *_AS_IT_IS)
    if len(file.data) == file.size:
        return Response(200, file.data, headers)
    last = file.offset + len(file.data) - 1
    place = b"bytes %d-%d/%d" % (file.offset, last, file.size)
    return Response(206, file.data, (*headers, (b"content-range", place)))


def failure(error: DomainError) -> Response:
    headers: list[Header] = [JSON]
    if isinstance(error, UnauthorizedError):
        headers.append(CHALLENGE)
    if isinstance(error, MethodNotAllowedError):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if isinstance(error, errors.TooManyRequestsError):
        headers.append(RETRY_SOON)
    return Response(errors.status_of(error), codec.encode(error.wire()), tuple(headers))


def as_json(value: object) -> bytes:
    """Bytes and JsonArrays are JSON already; everything else is encoded."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, JsonArray):
        return b"[" + b",".join(value.items) + b"]"
    return codec.encode(value)


class JsonArray(Value):
    """Items that are JSON already."""

    items: tuple[bytes, ...]


async def compressed(response: Response, accept_encoding: bytes) -> Response:
    """`response`, smaller, when that is worth it and the client can read it."""
    size = len(response.body)
    # A part is counted in bytes of the file, and stays as it is.
    if response.status == 206 or size < limits.COMPRESS_BYTES_MIN:
        return response
    if not _accepts_gzip(accept_encoding):
        return response
    if size <= limits.COMPRESS_INLINE_BYTES_MAX:
        body = _gzip(response.body)
    else:
        body = await asyncio.to_thread(_gzip, response.body)
    return Response(response.status, body, (*response.headers, _GZIP))


def _accepts_gzip(accept_encoding: bytes) -> bool:
    return b"gzip" in accept_encoding and _REFUSES_GZIP.search(accept_encoding) is None


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP_WINDOW)
    return compressor.compress(body) + compressor.flush()
