"""Reads an answer: its JSON, the events of a stream, or the failure that it tells."""

from collections.abc import AsyncGenerator
from typing import Final, cast

import msgspec

from perdure.client.errors import ClientError, WireError
from perdure.client.transport import Response
from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Confidential

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
_FRAME_BYTES_MAX: Final = 128 * 1024 * 1024


class Answer(Confidential):
    """An answer that was read to its end."""

    status: int
    content_type: str
    body: bytes


async def whole(incoming: Response) -> Answer:
    return Answer(incoming.status, incoming.content_type, await incoming.read())


async def frames(incoming: Response) -> AsyncGenerator[sse.Frame]:
    reader = sse.Reader(bytes_max=_FRAME_BYTES_MAX)
    async for chunk in incoming.chunks():
        try:
            for frame in reader.feed(chunk):
                yield frame
        except sse.FrameTooLargeError as error:
            raise ClientError("malformed-response", str(error)) from error


def failure(answer: Answer) -> WireError | ClientError:
    """The failure that an answer without success tells."""
    try:
        value = decoded_object(answer.body, status=answer.status)
    except ClientError:
        # Most likely the page of a proxy: its status says more than that it is not JSON.
        return unexpected(answer.status)
    if not isinstance(value.get("_tag"), str):
        return unexpected(answer.status)
    return WireError(value, status=answer.status)


def unexpected(status: int) -> ClientError:
    return ClientError("unexpected-status", f"Unexpected status {status}", status=status)


def json_bytes(answer: Answer) -> bytes:
    if answer.status != 200:
        raise unexpected(answer.status)
    require_type(answer, JSON)
    return answer.body


def decoded_object(data: bytes, *, status: int = 200) -> JsonObject:
    try:
        value = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = "The answer is not valid JSON"
        raise ClientError("malformed-response", message, status=status) from error
    if not isinstance(value, dict):
        raise ClientError("malformed-response", "The answer is not an object", status=status)
    return cast("JsonObject", value)


def require_type(answer: Answer | Response, wanted: str) -> None:
    found = answer.content_type.partition(";")[0].strip().lower()
    if found != wanted:
        raise ClientError(
            "unsupported-content-type",
            f"Expected {wanted}, got {found or 'no content type'}",
            status=answer.status,
        )
