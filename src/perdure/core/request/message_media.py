"""Finds and replaces the media parts of a conversation, in order."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from msgspec.structs import replace

from perdure.core.text import jsonc
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.schema.codec import JsonValue


def media_of(messages: Iterable[LLMMessage]) -> Iterator[MediaPart]:
    """Every media part, also in tool results, oldest first."""
    for message in messages:
        for part in message.content:
            match part:
                case MediaPart():
                    yield part
                case ToolResultPart():
                    yield from (item for item in _items(part.result) if isinstance(item, MediaPart))
                case TextPart() | ReasoningPart() | ToolCallPart():
                    pass
                case _:
                    assert_never(part)


def has_media(messages: Iterable[LLMMessage]) -> bool:
    return next(media_of(messages), None) is not None


def replace_media(segment: Segment, replacements: Iterator[MediaPart | TextPart]) -> Segment:
    """The segment with each media part replaced by the next of `instead`."""
    if not has_media(segment.messages):
        return segment
    return Segment(tuple(_message(message, replacements) for message in segment.messages))


def _message(message: LLMMessage, replacements: Iterator[MediaPart | TextPart]) -> LLMMessage:
    return replace(message, content=tuple(_part(part, replacements) for part in message.content))


def _part(part: Part, instead: Iterator[MediaPart | TextPart]) -> Part:
    match part:
        case MediaPart():
            return next(instead)
        case ToolResultPart():
            return _result(part, instead)
        case TextPart() | ReasoningPart() | ToolCallPart():
            return part
        case _:
            assert_never(part)


def _result(part: ToolResultPart, instead: Iterator[MediaPart | TextPart]) -> ToolResultPart:
    items = _items(part.result)
    if not items:
        return part
    value = [next(instead) if isinstance(item, MediaPart) else item for item in items]
    return replace(part, result=ToolResult("content", value))


def _items(result: ToolResult) -> Sequence[JsonValue]:
    if result.type != "content":
        return ()
    items: JsonValue = result.value
    return items if jsonc.is_list(items) else ()
