"""Reading an answer: the promised JSON, the events of a stream, or what failed.

Invariant: no exception of the HTTP library leaves here.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final, cast

import httpx2
import msgspec

from perdure.client.errors import ClientError, DeclaredError
from perdure.schema import codec, sse
from perdure.schema.codec import JsonObject

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
_FRAME_BYTES_MAX: Final = 128 * 1024 * 1024


@contextmanager
def transport_errors() -> Generator[None]:
    try:
        yield
    except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError) as error:
        message = str(error) or type(error).__name__
        raise ClientError("transport", message) from error


async def frames(response: httpx2.Response) -> AsyncGenerator[sse.Frame]:
    reader = sse.Reader(bytes_max=_FRAME_BYTES_MAX)
    chunks = response.aiter_bytes()
    while True:
        with transport_errors():
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        try:
            for frame in reader.feed(chunk):
                yield frame
        except sse.FrameTooLargeError as error:
            raise ClientError("malformed-response", str(error)) from error


async def failure(response: httpx2.Response) -> DeclaredError | ClientError:
    """What an answer other than success means."""
    with transport_errors():
        body = await response.aread()
    try:
        value = decoded_object(body, status=response.status_code)
    except ClientError:
        # A proxy's page, most likely. The status says more than that it is no JSON.
        return unexpected(response)
    if not isinstance(value.get("_tag"), str):
        return unexpected(response)
    return DeclaredError(value, status=response.status_code)


def unexpected(response: httpx2.Response) -> ClientError:
    status = response.status_code
    return ClientError("unexpected-status", f"Unexpected status {status}", status=status)


def json_bytes(response: httpx2.Response) -> bytes:
    if response.status_code != 200:
        raise unexpected(response)
    require_type(response, JSON)
    return response.content


def decoded_object(data: bytes, *, status: int = 200) -> JsonObject:
    try:
        value = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = "The answer is not the JSON that it claims to be"
        raise ClientError("malformed-response", message, status=status) from error
    if not isinstance(value, dict):
        raise ClientError("malformed-response", "The answer is not an object", status=status)
    return cast("JsonObject", value)


def require_type(response: httpx2.Response, wanted: str) -> None:
    found = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if found != wanted:
        raise ClientError(
            "unsupported-content-type",
            f"Expected {wanted}, got {found or 'no content type'}",
            status=response.status_code,
        )
