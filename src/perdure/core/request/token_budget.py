"""Token counts: how large a request is, and how large it may be.

The provider's count for the newest step covers everything up to it; later messages are estimated
from their length. No tokenizer is used.

Invariant: a model with unknown context size has no window, and no request exceeds it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from msgspec import UNSET
from msgspec.structs import replace

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
"""Overhead of one message."""


class ConversationSize(Value, kw_only=True):
    """The size of the messages of a conversation; it grows with them."""

    estimated: int = 0
    """All messages, estimated from their length."""
    reported: int = 0
    """The provider's count including its newest answer; 0 if there is none."""
    since: int = 0
    """Everything since that count, estimated."""
    left_out: tuple[tuple[int, int], ...] = ()
    """What was pruned or excluded: when, and how many tokens, estimated."""

    def plus(self, tokens: int) -> "ConversationSize":
        return replace(self, estimated=self.estimated + tokens, since=self.since + tokens)

    def without(self, tokens: int, *, at: int) -> "ConversationSize":
        """The size when that many tokens were left out at that time."""
        return replace(self, left_out=(*self.left_out, (at, tokens)))

    def counted(self, usage: TokenUsage, *, since: int, at: int = 0) -> "ConversationSize":
        """The size after the provider has counted, `at` that time, all but the last `since` tokens.

        What was left out afterwards is part of that count and not of the next request.
        """
        reported = total_tokens(usage)
        gone = sum(tokens for time, tokens in self.left_out if time >= at)
        if gone > 0:
            sent = max(self.estimated - since, 0)
            reported = reported * sent // (sent + gone)
        return replace(self, reported=reported, since=since)


class Demand(Value, kw_only=True):
    """The size of the next request."""

    fixed: int
    """System Context and tools, which every request contains."""
    conversation: ConversationSize

    @property
    def estimated(self) -> int:
        return self.fixed + self.conversation.estimated

    @property
    def tokens(self) -> int:
        """The best estimate of the whole request."""
        size = self.conversation
        if not size.reported:
            return self.estimated
        counted = size.reported + size.since
        # Some providers count nothing, or omit cached tokens.
        return counted if 2 * counted >= self.estimated else self.estimated


def window(limit: ModelLimit, *, buffer_tokens: int, output_tokens: int | None) -> int:
    """Maximum tokens of a request that leave space for the answer; 0 if unknown."""
    if limit.context <= 0:
        return 0
    # The buffer is limited so that a small model keeps a usable window.
    reserve = max(output_tokens or limit.output, min(buffer_tokens, limit.context // 4))
    usable = limit.context - min(reserve, limit.context // 2)
    return usable if limit.input is UNSET or limit.input <= 0 else min(usable, limit.input)


def conversation_max(demand: Demand, window_tokens: int) -> int:
    """Estimated tokens of conversation that fit into a window. May be negative."""
    counted = max(demand.tokens, demand.estimated, 1)
    # If the provider counts more than the estimate, it will do so afterwards too.
    return window_tokens * demand.estimated // counted - demand.fixed


def compaction_target(demand: Demand, window_tokens: int) -> int:
    """Estimated tokens that a conversation may have after a compaction. May be negative."""
    return conversation_max(demand, window_tokens * limits.COMPACTED_PERCENT_MAX // 100)


def due_compaction_target(demand: Demand, window_tokens: int) -> int | None:
    """The size that a compaction before this request must reach; None if none is due."""
    if not window_tokens or demand.tokens <= window_tokens:
        return None
    made = compaction_target(demand, window_tokens)
    # If the fixed part fills the window, compactions would repeat without end.
    return None if made < limits.COMPACTION_ROOM_TOKENS_MIN else made


def estimate(text: str) -> int:
    """Estimated tokens of a text: a quarter of its UTF-16 length, rounded."""
    units = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
    return (units + 2) // 4


def total_tokens(usage: TokenUsage) -> int:
    cache = usage.cache
    return usage.input + cache.read + cache.write + usage.output + usage.reasoning


def estimate_messages(messages: Iterable[LLMMessage]) -> int:
    return sum(_MESSAGE_TOKENS + sum(map(_estimate_part, message.content)) for message in messages)


def estimate_results(messages: Iterable[LLMMessage]) -> int:
    """Tokens of the tool results alone, which the provider did not count with its answer."""
    return estimate_messages(message for message in messages if message.role == "tool")


def estimate_result(result: ToolResult) -> int:
    if isinstance(result.value, str):
        return estimate(result.value)
    if result.type != "content":
        return _estimate_json(result.value)
    items: Iterable[JsonValue] = result.value
    return sum(
        _estimate_part(item) if isinstance(item, TextPart | MediaPart) else _estimate_json(item)
        for item in items
    )


def estimate_system(system: Sequence[str]) -> int:
    return sum(map(estimate, system))


def estimate_tools(tools: Sequence[ToolDefinition]) -> int:
    return sum(
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
            # Text is sent as text; for other media providers count about the image area.
            return estimate(data) if kind.startswith("text/") else limits.MEDIA_TOKENS
        case ToolCallPart(name=name, input=given):
            return estimate(name) + _estimate_json(given)
        case ToolResultPart(result=result):
            return estimate_result(result)
        case _:
            assert_never(part)


def _estimate_json(value: JsonValue) -> int:
    return len(codec.encode(value)) // 4
