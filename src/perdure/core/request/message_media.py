"""Finds and replaces the media parts of a conversation, in order."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from perdure.core.text import jsonc
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    Segment,
    TextPart,
    ToolResult,
    ToolResultPart,
)
from perdure.schema.codec import JsonValue


def media_of(messages: Iterable[LLMMessage]) -> Iterator[MediaPart]:
    """Every media part, also in tool results, oldest first."""
    for message in messages:
        for part in message.content:
            if isinstance(part, MediaPart):
                yield part
            elif isinstance(part, ToolResultPart):
                yield from (item for item in _items(part.result) if isinstance(item, MediaPart))


def has_media(messages: Iterable[LLMMessage]) -> bool:
    return next(media_of(messages), None) is not None


def replace_media(segment: Segment, replacements: Iterator[MediaPart | TextPart]) -> Segment:
    """The segment with each media part replaced by the next of `instead`."""
    if not has_media(segment.messages):
        return segment
    return Segment(tuple(_message(message, replacements) for message in segment.messages))


def _message(message: LLMMessage, replacements: Iterator[MediaPart | TextPart]) -> LLMMessage:
    return replace(message, content=tuple(_part(part, replacements) for part in message.content))


def _part(part: Part, replacements: Iterator[MediaPart | TextPart]) -> Part:
    if isinstance(part, MediaPart):
        return next(replacements)
    if not isinstance(part, ToolResultPart) or not _items(part.result):
        return part
    value = [
        next(replacements) if isinstance(item, MediaPart) else item for item in _items(part.result)
    ]
    return replace(part, result=ToolResult("content", value))


def _items(result: ToolResult) -> Sequence[JsonValue]:
    if result.type != "content":
        return ()
    items: JsonValue = result.value
    return items if jsonc.is_list(items) else ()
