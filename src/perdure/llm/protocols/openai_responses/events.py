"""OpenAI Responses: stream events as typed values.

One struct serves every event. Fields that only some events have stay undecoded until a known event
needs them, so that an event of a new type is never refused.
"""

from typing import Final, TypeVar

import msgspec

from perdure.llm.encoding import provider_json, shared, token_usage
from perdure.llm.event import FinishReason, ProviderError, ToolCall, Usage
from perdure.llm.http import error_body
from perdure.llm.http.error_body import ErrorDetail
from perdure.llm.message import ToolResult
from perdure.llm.protocols.openai_responses import native
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata

T = TypeVar("T")

_INCOMPLETE: Final[dict[str, FinishReason]] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}
_INPUTS: Final = {
    "code_interpreter_call": ("code", "container_id"),
    "file_search_call": ("queries",),
    "image_generation_call": ("revised_prompt", "size", "quality"),
    "mcp_list_tools": ("server_label",),
    "tool_search_call": ("arguments",),
}
"""Input fields of a hosted item; the other fields are its result."""


class Frame(msgspec.Struct, gc=False):
    type: object = None
    delta: object = None
    output_index: object = None
    content_index: object = None
    summary_index: object = None
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class Kind(msgspec.Struct):
    type: str = ""


class Piece(msgspec.Struct):
    """A part of a message's content or of a reasoning's summary."""

    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    encrypted_content: str | None = None
    summary: list[Piece] | None = None
    content: list[Piece] | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class Response(msgspec.Struct):
    store: bool | None = None
    incomplete_details: _Incomplete | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_FRAME: Final = msgspec.json.Decoder(Frame)


def frame_of(data: bytes) -> Frame:
    return provider_json.decode(_FRAME, data, "an event")


def part_of(kind: type[T], raw: msgspec.Raw, what: str) -> T:
    """Decode a required part of a known event."""
    try:
        return codec.decode(kind, bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise provider_json.not_understood(what, error) from error


def json_of(raw: bytes | msgspec.Raw, what: str) -> JsonValue:
    try:
        return codec.decode_any(bytes(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise provider_json.not_understood(what, error) from error


def response_of(frame: Frame) -> Response:
    return part_of(Response, frame.response, "a response") if frame.response else Response()


def incomplete_reason(response: Response) -> FinishReason:
    details = response.incomplete_details or _Incomplete()
    return _INCOMPLETE.get(details.reason or "", "unknown")


def usage_of(response: Response) -> Usage | None:
    """Non-overlapping counts; None if missing or invalid."""
    return token_usage.read(bytes(response.usage)) if response.usage else None


def provider_error(error_value: JsonValue) -> ProviderError:
    """The failure in an error event or a failed response."""
    error = (
        error_value.get("error") or error_value if shared.is_object(error_value) else error_value
    )
    if not error:
        return ProviderError(message="The provider failed and did not say why")
    code = ""
    if shared.is_object(error):
        kind = error.get("type")
        code = str(error.get("code") or ("" if kind in (None, "error") else kind))
    detail = error_body.detail_of(error)
    return ProviderError(
        message=f"{code}: {detail.text}" if code else detail.text,
        reason=ErrorDetail(detail.text, f"{code} {detail.code}").reason(),
    )


def hosted_call(id: str, item: JsonObject, metadata: ProviderMetadata) -> ToolCall:
    """The call of a hosted item."""
    kind = item["type"]
    name = native.HOSTED[kind]
    if kind == "web_search_call":
        action = item.get("action")
        asked = action if shared.is_object(action) else {}
    elif kind == "mcp_call":
        name = item["name"] if isinstance(item.get("name"), str) and item["name"] else name
        asked = _arguments(item.get("arguments"))
    else:
        asked = {key: item[key] for key in _INPUTS.get(kind, ()) if item.get(key) is not None}
    return ToolCall(id, name, asked, provider_executed=True, metadata=metadata)


def hosted_result(item: JsonObject) -> ToolResult:
    """The whole item, which is sent back later; or its error."""
    error = item.get("error")
    if error:
        return ToolResult("error", error_body.detail_of(error).text)
    if item.get("status") == "failed":
        return ToolResult("error", f"The provider's {native.HOSTED[item['type']]} failed")
    return ToolResult("json", item)


def _arguments(text: JsonValue) -> JsonObject:
    if not isinstance(text, str) or not text:
        return {}
    try:
        value = codec.decode_any(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {"value": text}
    return value if shared.is_object(value) else {"value": value}
