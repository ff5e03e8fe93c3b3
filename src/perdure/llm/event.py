"""Events of a streaming model response: text, reasoning and calls, then an end."""

from typing import Literal

from perdure.llm.error import Reason
from perdure.llm.message import ToolResult
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import Value

FinishReason = Literal["stop", "length", "tool-calls", "content-filter", "error", "unknown"]


class TextStart(Value):
    id: str


class TextDelta(Value):
    id: str
    text: str


class TextEnd(Value):
    id: str
    text: str | None = None
    """The final text, if it differs from the deltas; see llm.tool_fallback.text_calls."""


class ReasoningStart(Value):
    id: str
    metadata: ProviderMetadata | None = None


class ReasoningDelta(Value):
    id: str
    text: str


class ReasoningEnd(Value):
    id: str
    metadata: ProviderMetadata | None = None


class ToolInputStart(Value):
    id: str
    name: str


class ToolInputDelta(Value):
    id: str
    text: str


class ToolInputEnd(Value):
    """`text` is the whole raw input as the provider sent it; it may be invalid JSON."""

    id: str
    text: str


class ToolCall(Value):
    """A complete call with parsed input."""

    id: str
    name: str
    input: JsonObject
    provider_executed: bool = False
    metadata: ProviderMetadata | None = None


class ToolInputInvalid(Value):
    """A call whose input is not a JSON object: it is recorded and answered, never executed."""

    id: str
    name: str
    message: str


class HostedToolResult(Value):
    """The result of a call that the provider itself executed."""

    id: str
    result: ToolResult
    metadata: ProviderMetadata | None = None


class Usage(Value, kw_only=True):
    """Non-overlapping counts: `input` excludes cache, `output` excludes reasoning."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_hour: int = 0
    """How much of `cache_write` is kept for an hour, which costs more than the usual time."""


class Finish(Value):
    """The response is complete. Nothing follows."""

    reason: FinishReason
    usage: Usage | None = None
    paused: bool = False
    """Whether the provider stopped in the middle of its own work, and goes on when asked again."""


class ProviderError(Value, kw_only=True):
    """An error reported inside the provider's stream. Nothing follows."""

    message: str
    reason: Reason = "unknown"
    retry_after_ms: int | None = None
    """How long the provider asks to wait, if its message says so."""

    @property
    def overflow(self) -> bool:
        return self.reason == "overflow"


LLMEvent = (
    TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputEnd
    | ToolCall
    | ToolInputInvalid
    | HostedToolResult
    | Finish
    | ProviderError
)
