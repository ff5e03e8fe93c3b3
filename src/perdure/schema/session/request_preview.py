"""Everything a model was told and would be told next: for whoever wants to look.

No secrets: what only a provider's server may see (address, headers, key, configured fields of the
body) has no place in these records.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.ids import Seq
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.tool import ProviderMetadata


class EpochInfo(Record):
    """The Context Epoch: the same for every model that the Session talks to."""

    baseline_seq: Seq
    began: int
    """When the log reached `baselineSeq`, in milliseconds."""


class SourceDetail(Record):
    """One Context Source as it is now."""

    key: str
    removable: bool
    """Whether its end can be told. If not, its end starts a new epoch."""
    available: bool
    """Whether it can be observed now."""
    changed: bool
    """Whether the next boundary tells of it."""
    value: JsonValue | UnsetType = UNSET
    """As observed; where it cannot be, as the model was told. Left out once it is gone."""


class PendingContext(Record):
    """What the next boundary adds to what the model knows.

    `baseline`: a new epoch begins with `text`. `message`: `text` is told as a Mid-Conversation
    System Message. `blocked`: a baseline is due, and waits for the sources in `keys`.
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
    """A data URI, an http(s) URL or a managed file URI, as it was attached."""
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
    """The next request before a wire protocol encodes it, as if the next boundary were now."""

    agent: str
    model: ModelRef
    system: tuple[str, ...]
    messages: tuple[RequestMessage, ...]
    tools: tuple[RequestTool, ...]
    options: dict[str, JsonObject]
    """Model Request Options, by provider namespace."""
    tool_choice: Literal["auto", "none", "required"] | UnsetType = UNSET


class WindowInfo(Record):
    """How full the model's context is with the next request, in tokens, about."""

    tokens: int
    """Of the request."""
    compacts: bool
    """Whether the next turn begins with a compaction, which makes the request smaller."""
    context: int | UnsetType = UNSET
    """What the model takes with its answer. Left out where nobody knows."""
    request_max: int | UnsetType = UNSET
    """What a request may have, so that the answer has room. Beyond this a compaction is due."""


class ProviderContext(Record):
    """The baseline of the current Context Epoch, the Session History after it, and what is next.

    Before the first turn there is no epoch, and nothing has been told.
    """

    sources: tuple[str, ...]
    """Keys of the Context Sources that were admitted."""
    messages: tuple[SessionMessage, ...]
    source_details: tuple[SourceDetail, ...]
    pending_prompts: int
    """Admitted and not yet promoted."""
    baseline: str | UnsetType = UNSET
    """The exact text."""
    baseline_seq: Seq | UnsetType = UNSET
    epoch: EpochInfo | UnsetType = UNSET
    pending: PendingContext | UnsetType = UNSET
    """Left out when the Location cannot be looked at."""
    request: ProviderRequest | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    """Why there is no `request`."""
    window: WindowInfo | UnsetType = UNSET
    """Of the `request`."""
