"""Preview of a Session's context: what the model was told, and the next request.

No secrets: the provider's URL, headers, key and configured body fields are not part of these
records.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.ids import Seq
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.tool import ProviderMetadata


class EpochInfo(Record):
    """The Context Epoch, which is the same for every model of the Session."""

    baseline_seq: Seq
    began: int
    """Time of the event `baselineSeq`, in milliseconds."""


class SourceDetail(Record):
    """The current state of one Context Source."""

    key: str
    removable: bool
    """Whether its removal can be told. If not, its removal starts a new epoch."""
    available: bool
    """Whether it can be observed now."""
    changed: bool
    """Whether the next boundary tells the model of it."""
    value: JsonValue | UnsetType = UNSET
    """The observed value; if unavailable, the value last told. Omitted once it is gone."""


class PendingContext(Record):
    """What the next boundary tells the model.

    `baseline`: a new epoch begins with `text`. `message`: `text` is told as a Mid-Conversation
    System Message. `blocked`: a baseline is due but the sources in `keys` are unavailable.
    """

    type: Literal["nothing", "baseline", "message", "blocked"]
    text: str | UnsetType = UNSET
    keys: tuple[str, ...] | UnsetType = UNSET


class RequestText(Record, tag_field="type", tag="text"):
    text: str
    metadata: ProviderMetadata | UnsetType = UNSET


class RequestMedia(Record, tag_field="type", tag="media"):
    media_type: str
    data: str
    """A data URI, an http(s) URL or a managed file URI, as attached."""
    filename: str | UnsetType = UNSET


class RequestReasoning(Record, tag_field="type", tag="reasoning"):
    text: str
    metadata: ProviderMetadata | UnsetType = UNSET


class RequestToolCall(Record, tag_field="type", tag="tool-call"):
    id: str
    name: str
    input: JsonObject
    provider_executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET


class RequestToolResult(Record, tag_field="type", tag="tool-result"):
    id: str
    name: str
    result_type: Literal["json", "text", "error", "content"]
    result: JsonValue
    provider_executed: bool
    metadata: ProviderMetadata | UnsetType = UNSET


RequestPart = RequestText | RequestMedia | RequestReasoning | RequestToolCall | RequestToolResult


class RequestMessage(Record):
    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[RequestPart, ...]


class RequestTool(Record):
    name: str
    description: str
    input_schema: JsonObject


class ProviderRequest(Record):
    """The next request before encoding, as if the next boundary were now."""

    agent: str
    model: ModelRef
    system: tuple[str, ...]
    messages: tuple[RequestMessage, ...]
    tools: tuple[RequestTool, ...]
    options: dict[str, JsonObject]
    """Model Request Options, by provider namespace."""
    tool_choice: Literal["auto", "none", "required"] | UnsetType = UNSET


class WindowInfo(Record):
    """Estimated use of the model's context by the next request, in tokens."""

    tokens: int
    """Size of the request."""
    compacts: bool
    """Whether the next turn begins with a compaction, which shrinks the request."""
    context: int | UnsetType = UNSET
    """The model's context size, including the answer. Omitted if unknown."""
    request_max: int | UnsetType = UNSET
    """Maximum size of a request. Beyond this a compaction is due."""


class ProviderContext(Record):
    """The baseline of the current Context Epoch, the messages after it, and the next request.

    Before the first turn there is no epoch.
    """

    sources: tuple[str, ...]
    """Keys of the Context Sources in the baseline or told since."""
    messages: tuple[SessionMessage, ...]
    source_details: tuple[SourceDetail, ...]
    pending_prompts: int
    """Admitted and not yet promoted."""
    baseline: str | UnsetType = UNSET
    """The exact text of the baseline."""
    baseline_seq: Seq | UnsetType = UNSET
    epoch: EpochInfo | UnsetType = UNSET
    pending: PendingContext | UnsetType = UNSET
    """Omitted if the Location cannot be observed."""
    request: ProviderRequest | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    """Why there is no `request`."""
    window: WindowInfo | UnsetType = UNSET
    """Context use of the `request`."""
