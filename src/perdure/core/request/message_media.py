"""The media parts of a provider conversation, found and replaced in its order. Pure."""

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
    """Every media part, the oldest first; those in tool results too."""
    for message in messages:
        for part in message.content:
            if isinstance(part, MediaPart):
                yield part
            elif isinstance(part, ToolResultPart):
                yield from (item for item in _items(part.result) if isinstance(item, MediaPart))


def has_media(messages: Iterable[LLMMessage]) -> bool:
    return next(media_of(messages), None) is not None


def replace_media(run: Segment, instead: Iterator[MediaPart | TextPart]) -> Segment:
    """The run with the next of `instead` for each of its media."""
    if not has_media(run.messages):
        return run
    return Segment(tuple(_message(message, instead) for message in run.messages))


def _message(message: LLMMessage, instead: Iterator[MediaPart | TextPart]) -> LLMMessage:
    return replace(message, content=tuple(_part(part, instead) for part in message.content))


def _part(part: Part, instead: Iterator[MediaPart | TextPart]) -> Part:
    if isinstance(part, MediaPart):
        return next(instead)
    if not isinstance(part, ToolResultPart) or not _items(part.result):
        return part
    value = [next(instead) if isinstance(item, MediaPart) else item for item in _items(part.result)]
    return replace(part, result=ToolResult("content", value))


def _items(result: ToolResult) -> Sequence[JsonValue]:
    if result.type != "content":
        return ()
    items: JsonValue = result.value
    return items if jsonc.is_list(items) else ()
