"""Shared wording of what a provider has no form for: system updates, tool results, and nothing.

Pure. Which provider has a form of its own for these is decided by each wire protocol.
"""

from typing import Final, TypeGuard

import msgspec

from perdure.llm.message import LLMMessage, MediaPart, TextPart, ToolResult
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

# For providers that refuse a message without content, or a call without its result.
EMPTY_MESSAGE: Final = "(empty message)"
EMPTY_ANSWER: Final = "(empty answer)"
NO_OUTPUT: Final = "(no output)"
NO_RESULT: Final = "The result of this call is not known"


class LoweredResult(Value):
    """A tool result as text, and the media that its content carries beside it."""

    text: str
    media: tuple[MediaPart, ...] = ()


def system_update(message: LLMMessage) -> str:
    """A system message as user text that cannot be mistaken for what the user wrote."""
    text = "\n\n".join(part.text for part in message.content if isinstance(part, TextPart))
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<system-update>\n{escaped}\n</system-update>"


def lower_result(result: ToolResult) -> LoweredResult:
    """What the model is shown of a tool result."""
    match result.type:
        case "content":
            return _lower_content(result.value)
        case "json":
            return LoweredResult(json_text(result.value))
        case "text" | "error":
            plain = result.value if isinstance(result.value, str) else json_text(result.value)
            return LoweredResult(plain)


def unwrap(value: JsonValue) -> JsonValue:
    """A provider's own result: it is stored in an envelope that names its type."""
    if is_object(value) and value.keys() == {"type", "value"}:
        return value["value"]
    return value


def json_text(value: JsonValue) -> str:
    """Compact JSON, as the arguments of a call are written."""
    return codec.encode(value).decode()


def is_object(value: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def elements(value: JsonValue) -> list[JsonValue]:
    """Those of a list; none of anything else."""
    match value:
        case [*found]:
            return found
        case _:
            return []


class _ContentItem(msgspec.Struct):
    """A text or a file, as stored or as our own parts, read leniently: it must be sendable."""

    type: str = ""
    text: str = ""
    uri: str = ""
    mime: str = ""
    name: str | None = None
    data: str = ""
    media_type: str = ""
    filename: str | None = None

    def media(self) -> MediaPart:
        name = self.name or self.filename
        return MediaPart(self.mime or self.media_type, self.uri or self.data, name)


def _lower_content(value: JsonValue) -> LoweredResult:
    try:
        items = codec.convert(list[_ContentItem], codec.to_json_value(value))
    except msgspec.ValidationError:
        return LoweredResult(json_text(value))
    texts = [item.text for item in items if item.type == "text" or item.text]
    media = tuple(item.media() for item in items if item.uri or item.data)
    return LoweredResult("\n\n".join(texts), media)
