"""The durable vocabulary of a Session: facts in the past tense, whole, with the ids they create.

Every value here is the `data` of an event. Which stored name and version it goes by stands in
`manifest`. All of them carry `timestamp` (domain time, not an order) and `session_id`.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.ids import MessageID, ProjectID, Seq, SessionID, ToolCallID, WorkspaceID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef, TokenUsage
from perdure.schema.session.prompt import Delivery, Prompt
from perdure.schema.session.session import RevertState, SessionTime
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import (
    AttachedContent,
    CallProvider,
    ErrorInfo,
    ProviderMetadata,
    ToolContent,
)
from perdure.schema.session.usage import SessionBudget, SidePurpose

CompactionReason = Literal["auto", "manual"]


class SessionSeed(Record):
    """The Session as it was created."""

    id: SessionID
    slug: str
    project_id: ProjectID
    directory: str
    path: str
    title: str
    version: str
    cost: float
    tokens: TokenUsage
    time: SessionTime
    workspace_id: WorkspaceID | UnsetType = UNSET
    parent_id: SessionID | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET


class SessionCreated(Record):
    session_id: SessionID
    info: SessionSeed

    @property
    def timestamp(self) -> int:
        return self.info.time.created


class Fact(Record):
    """What every later event says: when in the domain's time, and of which Session."""

    timestamp: int
    session_id: SessionID


class AgentSwitched(Fact):
    message_id: MessageID
    agent: str


class ModelSwitched(Fact):
    message_id: MessageID
    model: ModelRef


class Moved(Fact):
    location: LocationRef
    subdirectory: str | UnsetType = UNSET


class Renamed(Fact):
    title: str


class Archived(Fact):
    pass


class Unarchived(Fact):
    pass


class BudgetChanged(Fact):
    """What the Session may use from now on, whole."""

    budget: SessionBudget


class Spent(Fact):
    """A request beside the conversation was answered; the Session pays for it."""

    purpose: SidePurpose
    model: ModelRef
    cost: float
    tokens: TokenUsage


class Deleted(Fact):
    """The last event of a log. Nothing follows it; everything before it is being removed."""


class Forked(Fact):
    """Ends the copy that a fork's log begins with: of which Session, and up to which sequence."""

    source: SessionID
    seq: Seq


class PromptAdmitted(Fact):
    message_id: MessageID
    prompt: Prompt
    delivery: Delivery


class PromptPromoted(Fact):
    """Stored as `prompted`. Its timestamp is that of the admission."""

    message_id: MessageID
    prompt: Prompt
    delivery: Delivery
    attached: tuple[AttachedContent, ...] | UnsetType = UNSET
    """What was told of the attachments; those that go out as they were given are not in it."""


class PromptRevised(Fact):
    """A pending prompt says this from now on, whole, and is delivered like this."""

    message_id: MessageID
    prompt: Prompt
    delivery: Delivery


class PromptCancelled(Fact):
    """A pending prompt will never be promoted."""

    message_id: MessageID


class InboxReordered(Fact):
    """These pending prompts have exchanged their places, so that they stand in this order."""

    message_ids: tuple[MessageID, ...]


class ContextUpdated(Fact):
    message_id: MessageID
    text: str


class SyntheticAdded(Fact):
    message_id: MessageID
    text: str


class ShellStarted(Fact):
    message_id: MessageID
    call_id: ToolCallID
    command: str


class ShellEnded(Fact):
    call_id: ToolCallID
    output: str


class StepFact(Fact):
    """Owned by one assistant message, the response of one Provider Turn."""

    assistant_message_id: MessageID


class StepStarted(StepFact):
    agent: str
    model: ModelRef
    snapshot: str | UnsetType = UNSET


class StepEnded(StepFact):
    finish: str
    cost: float
    tokens: TokenUsage
    snapshot: str | UnsetType = UNSET
    files: tuple[str, ...] | UnsetType = UNSET


class StepFailed(StepFact):
    error: ErrorInfo


class TextStarted(StepFact):
    text_id: str


class TextEnded(StepFact):
    """The full value. Deltas are live only and never reach the log."""

    text_id: str
    text: str


class ReasoningStarted(StepFact):
    reasoning_id: str
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class ReasoningEnded(StepFact):
    reasoning_id: str
    text: str
    provider_metadata: ProviderMetadata | UnsetType = UNSET


class ToolFact(StepFact):
    """About one call. Provider call ids repeat across turns; the pair with the message does not."""

    call_id: ToolCallID


class ToolInputStarted(ToolFact):
    name: str


class ToolInputEnded(ToolFact):
    text: str


class ToolCalled(ToolFact):
    """Recorded before the side effect it announces."""

    tool: str
    input: JsonObject
    provider: CallProvider


class ToolProgressed(ToolFact):
    structured: JsonObject
    content: tuple[ToolContent, ...]


class ToolSucceeded(ToolFact):
    structured: JsonObject
    content: tuple[ToolContent, ...]
    provider: CallProvider
    output_paths: tuple[str, ...] | UnsetType = UNSET
    result: JsonValue | UnsetType = UNSET


class ToolFailed(ToolFact):
    error: ErrorInfo
    provider: CallProvider
    result: JsonValue | UnsetType = UNSET


class TodosUpdated(ToolFact):
    """The Session's list as this call wrote it, whole. Commits with the call's success."""

    todos: Todos


class RetryError(Record):
    message: str
    is_retryable: bool
    status_code: int | UnsetType = UNSET
    response_headers: dict[str, str] | UnsetType = UNSET
    response_body: str | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET


class Retried(Fact):
    """A request failed before anything of its answer came, and will be sent again."""

    attempt: int
    """The one that failed, counted from 1."""
    error: RetryError
    """Its `metadata` has the kind of the failure as `reason`."""
    next: int | UnsetType = UNSET
    """When it will be, in milliseconds since the epoch."""


class CompactionStarted(Fact):
    message_id: MessageID
    reason: CompactionReason
    instruction: str | UnsetType = UNSET
    """What the person who asked wants of the summary."""


class CompactionEnded(Fact):
    message_id: MessageID
    reason: CompactionReason
    text: str
    recent: str
    directives: tuple[str, ...] | UnsetType = UNSET
    """What the user said before the recent text, word for word."""
    todos: Todos | UnsetType = UNSET
    """What was still to be done."""


class RevertStaged(Fact):
    revert: RevertState


class RevertCleared(Fact):
    pass


class RevertCommitted(Fact):
    message_id: MessageID


ToolEvent = (
    ToolInputStarted | ToolInputEnded | ToolCalled | ToolProgressed | ToolSucceeded | ToolFailed
)
PartEvent = TextStarted | TextEnded | ReasoningStarted | ReasoningEnded | ToolEvent
"""Adds or changes one part of an assistant message."""
AssistantEvent = StepEnded | StepFailed | PartEvent
"""Changes an assistant message that exists."""
MessageEvent = (
    AgentSwitched
    | ModelSwitched
    | PromptPromoted
    | ContextUpdated
    | SyntheticAdded
    | ShellStarted
    | StepStarted
    | CompactionEnded
)
"""Creates a message."""
SessionEvent = (
    SessionCreated
    | AgentSwitched
    | ModelSwitched
    | Moved
    | Renamed
    | Archived
    | Unarchived
    | BudgetChanged
    | Spent
    | Deleted
    | Forked
    | PromptAdmitted
    | PromptPromoted
    | PromptRevised
    | PromptCancelled
    | InboxReordered
    | ContextUpdated
    | SyntheticAdded
    | ShellStarted
    | ShellEnded
    | StepStarted
    | AssistantEvent
    | TodosUpdated
    | Retried
    | CompactionStarted
    | CompactionEnded
    | RevertStaged
    | RevertCleared
    | RevertCommitted
)
