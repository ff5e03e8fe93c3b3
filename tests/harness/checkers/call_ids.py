"""Call ids of a request: unique in it, and otherwise of no meaning."""

from collections.abc import Iterator

from msgspec.structs import replace

from perdure.llm.message import LLMMessage, Part, ToolCallPart, ToolResultPart


def same_but_for_ids(one: tuple[LLMMessage, ...], other: tuple[LLMMessage, ...]) -> bool:
    """Whether two conversations are equal, whatever their calls are named."""
    return one == other or tuple(_numbered(one)) == tuple(_numbered(other))


def find_repeated(messages: tuple[LLMMessage, ...]) -> list[str]:
    """The ids that two calls of a conversation have."""
    seen: set[str] = set()
    repeated: list[str] = []
    for call in (call for message in messages for call in _calls(message)):
        if call.id in seen:
            repeated.append(call.id)
        seen.add(call.id)
    return repeated


def _numbered(messages: tuple[LLMMessage, ...]) -> Iterator[LLMMessage]:
    """The conversation with calls named by their place; results follow their calls."""
    names: dict[str, str] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            names = {call.id: f"{place}.{at}" for at, call in enumerate(_calls(message))}
        yield replace(message, content=tuple(_named(part, names) for part in message.content))


def _named(part: Part, names: dict[str, str]) -> Part:
    if isinstance(part, ToolCallPart | ToolResultPart):
        return replace(part, id=names.get(part.id, part.id))
    return part


def _calls(message: LLMMessage) -> Iterator[ToolCallPart]:
    for part in message.content:
        if isinstance(part, ToolCallPart) and not part.provider_executed:
            yield part
