"""What a model answers, as it arrives: lifecycles of text, reasoning and tool calls, then an end."""

from dataclasses import dataclass
from typing import Literal

from perdure.llm.message import ToolResult
from perdure.schema.codec import JsonObject
from perdure.schema.tool import ProviderMetadata

FinishReason = Literal["stop", "length", "tool-calls", "content-filter", "error", "unknown"]


@dataclass(frozen=True, slots=True)
class TextStart:
    id: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class TextEnd:
    id: str


@dataclass(frozen=True, slots=True)
class ReasoningStart:
    id: str
    metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnd:
    id: str
    metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ToolInputStart:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolInputDelta:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolInputEnd:
    """`text` is the whole raw input as the provider sent it, perhaps not valid JSON."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call with parsed input."""

    id: str
    name: str
    input: JsonObject
    provider_executed: bool = False
    metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ToolInputInvalid:
    """A call whose input is not a JSON object: it can be recorded, answered, never executed."""

    id: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class HostedToolResult:
    """The result of a call that the provider itself executed."""

    id: str
    result: ToolResult
    metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Non-overlapping counts: `input` excludes cache, `output` excludes reasoning."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The response is complete. Nothing follows."""

    reason: FinishReason
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """The provider said, inside its stream, that it failed. Nothing follows."""

    message: str
    overflow: bool = False
    retryable: bool = False


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
