"""How large a request is, and how large it may be, in tokens.

A provider's own count of the newest step is the best measure there is of everything up to it; what
came since is estimated from its length. Nothing here knows a tokenizer.

Invariant: a model whose context is not known has no window, and nothing is ever over it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from msgspec import UNSET

from perdure.core import limits
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from perdure.llm.request import ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.models.model import ModelLimit, TokenUsage
from perdure.schema.value import Value

_MESSAGE_TOKENS: Final = 4
"""What separates one message from the next."""


class ConversationSize(Value, kw_only=True):
    """The size of the messages of a conversation; it grows with them."""

    estimated: int = 0
    """All of them, by their length."""
    reported: int = 0
    """What the provider counted up to and with its newest answer; 0 when it has not."""
    since: int = 0
    """What has come since then, by its length."""

    def plus(self, tokens: int) -> "ConversationSize":
        return ConversationSize(
            estimated=self.estimated + tokens, reported=self.reported, since=self.since + tokens
        )

    def counted(self, usage: TokenUsage, *, since: int) -> "ConversationSize":
        """The provider has counted all of it but the last `since` tokens."""
        return ConversationSize(estimated=self.estimated, reported=total_tokens(usage), since=since)


class Demand(Value, kw_only=True):
    """What the next request needs."""

    fixed: int
    """What goes with every request, whatever was said: System Context and tools."""
    conversation: ConversationSize

    @property
    def estimated(self) -> int:
        return self.fixed + self.conversation.estimated

    @property
    def tokens(self) -> int:
        """The best guess at the whole request."""
        size = self.conversation
        if not size.reported:
            return self.estimated
        counted = size.reported + size.since
        # Some providers count nothing, or leave out what they had cached.
        return counted if 2 * counted >= self.estimated else self.estimated


def window(limit: ModelLimit, *, buffer_tokens: int, output_tokens: int | None) -> int:
    """How many tokens a request may have, so that the answer has room; 0 is unknown."""
    if limit.context <= 0:
        return 0
    # The buffer is ours to choose: a small model must be left with something to work in.
    reserve = max(output_tokens or limit.output, min(buffer_tokens, limit.context // 4))
    usable = limit.context - min(reserve, limit.context // 2)
    return usable if limit.input is UNSET or limit.input <= 0 else min(usable, limit.input)


def compaction_target(demand: Demand, window_tokens: int) -> int:
    """How large a conversation may be after a compaction, by its length. May be negative."""
    aimed = window_tokens * limits.COMPACTED_PERCENT_MAX // 100
    counted = max(demand.tokens, demand.estimated, 1)
    # Where the provider counts more than we estimate, so it will afterwards.
    return aimed * demand.estimated // counted - demand.fixed


def due_compaction_target(demand: Demand, window_tokens: int) -> int | None:
    """The room that a compaction before this request is to make; None where none is due."""
    if not window_tokens or demand.tokens <= window_tokens:
        return None
    made = compaction_target(demand, window_tokens)
    # Where all but the conversation takes the room, condensing it would not end.
    return None if made < limits.COMPACTION_ROOM_TOKENS_MIN else made


def estimate(text: str) -> int:
    """About how many tokens a text is: a quarter of its UTF-16 length, rounded."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return (units + 2) // 4


def total_tokens(usage: TokenUsage) -> int:
    cache = usage.cache
    return usage.input + cache.read + cache.write + usage.output + usage.reasoning


def estimate_messages(messages: Iterable[LLMMessage]) -> int:
    return sum(_MESSAGE_TOKENS + sum(map(_estimate_part, message.content)) for message in messages)


def estimate_results(messages: Iterable[LLMMessage]) -> int:
    """Of the tool results alone, which no provider has counted with the answer that asked."""
    return estimate_messages(message for message in messages if message.role == "tool")


def estimate_fixed(system: Sequence[str], tools: Sequence[ToolDefinition]) -> int:
    texts = sum(map(estimate, system))
    return texts + sum(
        _MESSAGE_TOKENS
        + estimate(tool.name)
        + estimate(tool.description)
        + _estimate_json(tool.input_schema)
        for tool in tools
    )


def _estimate_part(part: Part) -> int:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return estimate(text)
        case MediaPart(media_type=kind, data=data):
            # Text goes out as text; of anything else providers count something like its area.
            return estimate(data) if kind.startswith("text/") else limits.MEDIA_TOKENS
        case ToolCallPart(name=name, input=given):
            return estimate(name) + _estimate_json(given)
        case ToolResultPart(result=result):
            return _estimate_result(result)
        case _:
            assert_never(part)


def _estimate_result(result: ToolResult) -> int:
    if isinstance(result.value, str):
        return estimate(result.value)
    if result.type != "content":
        return _estimate_json(result.value)
    items: Iterable[JsonValue] = result.value
    return sum(
        _estimate_part(item) if isinstance(item, TextPart | MediaPart) else _estimate_json(item)
        for item in items
    )


def _estimate_json(value: JsonValue) -> int:
    return len(codec.encode(value)) // 4
