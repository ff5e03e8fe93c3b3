"""A provider-neutral conversation: messages, their parts, and runs.

Values only. `Segment` is the unit of provider-request encoding: once the next run has begun, a run
never changes again, so its wire bytes can be kept (llm.encoded_history).
"""

from collections.abc import Iterator
from typing import Literal

from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import Value

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(Value):
    text: str
    metadata: ProviderMetadata | None = None


class MediaPart(Value):
    """`data` is a data URI, an http(s) URL or a managed file URI, as it was attached."""

    media_type: str
    data: str
    filename: str | None = None


class ReasoningPart(Value):
    text: str
    metadata: ProviderMetadata | None = None


class ToolCallPart(Value):
    id: str
    name: str
    input: JsonObject
    provider_executed: bool = False
    metadata: ProviderMetadata | None = None


class ToolResult(Value):
    """`json` and `error` carry a JSON value, `text` a string, `content` text and media parts."""

    type: Literal["json", "text", "error", "content"]
    value: JsonValue


class ToolResultPart(Value):
    id: str
    name: str
    result: ToolResult
    provider_executed: bool = False
    metadata: ProviderMetadata | None = None


Part = TextPart | MediaPart | ReasoningPart | ToolCallPart | ToolResultPart


class LLMMessage(Value):
    role: Role
    content: tuple[Part, ...]
    id: str = ""
    """Of the stored message, where it is an answer: a call's id is unique only inside of one."""


class Segment(Value):
    """Either consecutive user and system messages, or one assistant message with its tool results.

    What a wire protocol writes for a run never depends on what follows it, so it can be kept.
    """

    messages: tuple[LLMMessage, ...]

    @property
    def is_answer(self) -> bool:
        """Whether the model said it; a tool result may be all that is left of it."""
        return self.messages[0].role in ("assistant", "tool")

    def answered(self) -> Iterator[Part]:
        """What the model said, part by part."""
        for message in self.messages:
            if message.role == "assistant":
                yield from message.content

    def calls(self) -> list[ToolCallPart]:
        """The calls that we were to make."""
        said = self.answered()
        return [p for p in said if isinstance(p, ToolCallPart) and not p.provider_executed]

    def results(self) -> dict[str, ToolResultPart]:
        """What came of calls, ours and the provider's, by their ids."""
        parts = (part for message in self.messages for part in message.content)
        return {part.id: part for part in parts if isinstance(part, ToolResultPart)}


def split_segments(messages: tuple[LLMMessage, ...]) -> tuple[Segment, ...]:
    """Split a conversation into runs, keeping its order."""
    runs: list[Segment] = []
    current: list[LLMMessage] = []
    for message in messages:
        if current and _starts_segment(current[-1].role, message.role):
            runs.append(Segment(tuple(current)))
            current = []
        current.append(message)
    if current:
        runs.append(Segment(tuple(current)))
    return tuple(runs)


def _starts_segment(before: Role, now: Role) -> bool:
    if now == "assistant":
        return True
    if now == "tool":
        return before not in ("assistant", "tool")
    return before in ("assistant", "tool")
