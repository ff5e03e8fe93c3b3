"""A provider-neutral conversation: messages, their parts, and segments.

`Segment` is the unit of encoding: once the next segment has begun, a segment never changes again,
so its wire bytes can be cached (llm.encoded_history).
"""

from collections.abc import Iterator
from typing import Literal, assert_never

from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import Value

Role = Literal["system", "user", "assistant", "tool"]


class TextPart(Value):
    text: str
    metadata: ProviderMetadata | None = None


class MediaPart(Value):
    """`data` is a data URI, an http(s) URL or a managed file URI, as attached."""

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
UserPart = TextPart | MediaPart
AnswerPart = TextPart | ReasoningPart | ToolCallPart


class LLMMessage(Value):
    role: Role
    content: tuple[Part, ...]
    id: str = ""
    """Id of a stored assistant message: call ids are unique only within one."""

    def user_parts(self) -> Iterator[UserPart]:
        """The parts that a user message can hold."""
        for part in self.content:
            match part:
                case TextPart() | MediaPart():
                    yield part
                case ReasoningPart() | ToolCallPart() | ToolResultPart():
                    pass
                case _:
                    assert_never(part)


class Segment(Value):
    """Either consecutive user and system messages, or one assistant message with its tool results.

    Its wire bytes never depend on what follows it, so they can be cached.
    """

    messages: tuple[LLMMessage, ...]

    @property
    def is_answer(self) -> bool:
        """Whether it is a model's answer; it may consist of a tool result only."""
        return self.messages[0].role in ("assistant", "tool")

    def answer_parts(self) -> Iterator[AnswerPart]:
        """What the model said, part by part. Results of hosted calls are in `results`."""
        answers = (message for message in self.messages if message.role == "assistant")
        for part in (part for message in answers for part in message.content):
            match part:
                case TextPart() | ReasoningPart() | ToolCallPart():
                    yield part
                case MediaPart() | ToolResultPart():
                    pass
                case _:
                    assert_never(part)

    def calls(self) -> list[ToolCallPart]:
        """The calls that this program executes."""
        parts = self.answer_parts()
        return [p for p in parts if isinstance(p, ToolCallPart) and not p.provider_executed]

    def results(self) -> dict[str, ToolResultPart]:
        """The results of all calls by call id, also of those that the provider executed."""
        parts = (part for message in self.messages for part in message.content)
        return {part.id: part for part in parts if isinstance(part, ToolResultPart)}


def split_segments(messages: tuple[LLMMessage, ...]) -> tuple[Segment, ...]:
    """Split a conversation into segments, in order."""
    segments: list[Segment] = []
    current: list[LLMMessage] = []
    for message in messages:
        if current and _starts_segment(current[-1].role, message.role):
            segments.append(Segment(tuple(current)))
            current = []
        current.append(message)
    if current:
        segments.append(Segment(tuple(current)))
    return tuple(segments)


def _starts_segment(before: Role, now: Role) -> bool:
    if now == "assistant":
        return True
    if now == "tool":
        return before not in ("assistant", "tool")
    return before in ("assistant", "tool")
