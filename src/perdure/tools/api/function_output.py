"""Turns the return value of a plain function into a tool's result, for programs and for the model.

A text becomes one text part, bytes become an image. Any other value becomes JSON: an object as it
is, another value below `result`.
"""

import base64
from typing import cast

import msgspec

from perdure.core import limits
from perdure.net import data_uri
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.tools.api.tool import ToolFailure
from perdure.tools.media import file_kind


def structured_of(returned: object) -> JsonObject:
    """The result for programs; raises ToolFailure for a value that is not JSON."""
    match returned:
        case None:
            return {}
        case str():
            return {"output": returned}
        case bytes():
            return {"bytes": len(returned)}
        case _:
            value = _json(returned)
            return cast("JsonObject", value) if isinstance(value, dict) else {"result": value}


def content_of(returned: object) -> tuple[ToolContent, ...]:
    """The parts that the model is shown; empty if it is shown the JSON."""
    match returned:
        case None:
            return (TextContent(text="Done."),)
        case str():
            return (TextContent(text=returned),)
        case bytes():
            return (_image(returned),)
        case _:
            return ()


def _image(data: bytes) -> FileContent:
    mime = file_kind.image_mime(data)
    if mime is None:
        raise ToolFailure("The tool returned bytes that are not an image")
    encoded = base64.b64encode(data).decode()
    if len(encoded) > limits.IMAGE_BASE64_BYTES_MAX:
        most = limits.IMAGE_BASE64_BYTES_MAX
        raise ToolFailure(f"The tool returned an image of more than {most} encoded bytes")
    return FileContent(uri=data_uri.write_encoded(mime, encoded), mime=mime)


def _json(returned: object) -> JsonValue:
    dump = getattr(returned, "model_dump", None)
    if callable(dump):
        # A pydantic model converts itself to JSON.
        return dump(mode="json")
    try:
        return codec.to_json_value(returned)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ToolFailure(f"The tool returned something that is not JSON: {error}") from error
