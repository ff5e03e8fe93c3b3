"""Texts shared by wire protocols: system updates, tool results, and placeholders.

Each wire protocol decides whether its provider has its own form for these.
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
    """A tool result as text, and the media of its content."""

    text: str
    media: tuple[MediaPart, ...] = ()


def system_update(message: LLMMessage) -> str:
    """A system message as tagged user text, so that it is distinct from the user's own text."""
    text = "\n\n".join(part.text for part in message.content if isinstance(part, TextPart))
    return f"<system-update>\n{escape_markup(text)}\n</system-update>"


def escape_markup(text: str) -> str:
    """Return `text` so that it cannot end the tag that it is put in."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lower_result(result: ToolResult) -> LoweredResult:
    """A tool result as the model is shown it."""
    match result.type:
        case "content":
            return _lower_content(result.value)
        case "json":
            return LoweredResult(json_text(result.value))
        case "text" | "error":
            plain = result.value if isinstance(result.value, str) else json_text(result.value)
            return LoweredResult(plain)


def unwrap(value: JsonValue) -> JsonValue:
    """The value of a provider's own result, which is stored with its type."""
    if is_object(value) and value.keys() == {"type", "value"}:
        return value["value"]
    return value


def json_text(value: JsonValue) -> str:
    """Compact JSON, as the arguments of a call are written."""
    return codec.encode(value).decode()


def is_object(value: JsonValue) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def elements(value: JsonValue) -> list[JsonValue]:
    """The elements of a list; empty for anything else."""
    match value:
        case [*found]:
            return found
        case _:
            return []


class _ContentItem(msgspec.Struct):
    """A text or a file, stored or as a message part, decoded leniently so that it can be sent."""

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
