"""Projected messages: Session History as clients read it.

Each message is the fold of the events that name it. Order in a list is the sequence of the
creating event. The stored form is the wire form.
"""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import ModelRef, StepRoute, TokenUsage
from perdure.schema.session.prompt import AgentMention, FileAttachment
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import (
    AttachedContent,
    ErrorInfo,
    PartProvider,
    ProviderMetadata,
    ToolState,
)


class Created(Record):
    created: int
    excluded: int | UnsetType = UNSET
    """Since when the model is not sent the message."""


class Span(Record):
    created: int
    completed: int | UnsetType = UNSET
    excluded: int | UnsetType = UNSET
    """Since when the model is not sent the message."""


class ToolTime(Record):
    created: int
    ran: int | UnsetType = UNSET
    completed: int | UnsetType = UNSET
    pruned: int | UnsetType = UNSET
    """Since when a compaction has the model sent a marker in place of the result."""
    excluded: int | UnsetType = UNSET
    """Since when the user has the model sent a marker in place of the result."""


class TextPart(Record, tag_field="type", tag="text"):
    id: str
    text: str
    cursor: int | UnsetType = UNSET
    """While the part streams: the live deltas with a greater cursor follow its text."""


class ReasoningPart(Record, tag_field="type", tag="reasoning"):
    id: str
    text: str
    provider_metadata: ProviderMetadata | UnsetType = UNSET
    time: Span | UnsetType = UNSET
    cursor: int | UnsetType = UNSET


class ToolPart(Record, tag_field="type", tag="tool"):
    """One call. Its id is the provider's and unique only inside its assistant message."""

    id: ToolCallID
    name: str
    state: ToolState
    time: ToolTime
    provider: PartProvider | UnsetType = UNSET
    cursor: int | UnsetType = UNSET
    """While the input streams: the live deltas with a greater cursor follow it."""


AssistantPart = TextPart | ReasoningPart | ToolPart


class StepSnapshot(Record):
    start: str | UnsetType = UNSET
    end: str | UnsetType = UNSET
    files: tuple[str, ...] | UnsetType = UNSET


class UserMessage(Record, tag_field="type", tag="user"):
    id: MessageID
    time: Created
    text: str
    metadata: JsonObject | UnsetType = UNSET
    files: tuple[FileAttachment, ...] | UnsetType = UNSET
    agents: tuple[AgentMention, ...] | UnsetType = UNSET
    attached: tuple[AttachedContent, ...] | UnsetType = UNSET


class AssistantMessage(Record, tag_field="type", tag="assistant"):
    """The response of one Provider Turn."""

    id: MessageID
    time: Span
    agent: str
    model: ModelRef
    content: tuple[AssistantPart, ...]
    metadata: JsonObject | UnsetType = UNSET
    snapshot: StepSnapshot | UnsetType = UNSET
    finish: str | UnsetType = UNSET
    cost: float | UnsetType = UNSET
    tokens: TokenUsage | UnsetType = UNSET
    error: ErrorInfo | UnsetType = UNSET
    route: StepRoute | UnsetType = UNSET


class SystemMessage(Record, tag_field="type", tag="system"):
    """A Mid-Conversation System Message: the exact text that was sent."""

    id: MessageID
    time: Created
    text: str
    metadata: JsonObject | UnsetType = UNSET


class SyntheticMessage(Record, tag_field="type", tag="synthetic"):
    id: MessageID
    time: Created
    session_id: SessionID
    text: str
    metadata: JsonObject | UnsetType = UNSET


class ShellMessage(Record, tag_field="type", tag="shell"):
    id: MessageID
    time: Span
    call_id: ToolCallID
    command: str
    output: str
    metadata: JsonObject | UnsetType = UNSET


class CompactionMessage(Record, tag_field="type", tag="compaction"):
    id: MessageID
    time: Created
    reason: str
    summary: str
    recent: str
    metadata: JsonObject | UnsetType = UNSET
    directives: tuple[str, ...] | UnsetType = UNSET
    todos: Todos | UnsetType = UNSET


class AgentSwitchedMessage(Record, tag_field="type", tag="agent-switched"):
    id: MessageID
    time: Created
    agent: str
    metadata: JsonObject | UnsetType = UNSET


class ModelSwitchedMessage(Record, tag_field="type", tag="model-switched"):
    id: MessageID
    time: Created
    model: ModelRef
    metadata: JsonObject | UnsetType = UNSET


SessionMessage = (
    UserMessage
    | AssistantMessage
    | SystemMessage
    | SyntheticMessage
    | ShellMessage
    | CompactionMessage
    | AgentSwitchedMessage
    | ModelSwitchedMessage
)
