"""The durable events of a Session: facts in the past tense, complete, with the ids they create.

Every value here is the `data` of an event. `manifest` has its stored name and version. All of them
have `timestamp` (domain time, not an order) and `session_id`.
"""

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef, StepRoute, TokenUsage
from perdure.schema.session.compaction import (
    CompactionEnded,
    CompactionReported,
    CompactionStarted,
)
from perdure.schema.session.fact import Fact
from perdure.schema.session.prompt import Delivery, Prompt
from perdure.schema.session.seed import SessionSeed
from perdure.schema.session.session import ModelSubstitute, RevertState
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import (
    AttachedContent,
    CallProvider,
    ErrorInfo,
    ProviderMetadata,
    RetryError,
    ToolContent,
)
from perdure.schema.session.usage import SessionBudget, SidePurpose


class SessionCreated(Record):
    session_id: SessionID
    info: SessionSeed

    @property
    def timestamp(self) -> int:
        return self.info.time.created


class AgentSwitched(Fact):
    message_id: MessageID
    agent: str


class ModelSwitched(Fact):
    message_id: MessageID
    model: ModelRef


class ModelSubstituted(Fact):
    """Another model of the agent's chain answers from now on, or the chosen one again."""

    substitute: ModelSubstitute | UnsetType = UNSET
    """Not set: the chosen model is back."""


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
    """The whole new budget of the Session."""

    budget: SessionBudget


class RulesChanged(Fact):
    """All permission rules of the Session, as they are from now on."""

    rules: SessionRules


class Spent(Fact):
    """A request outside the conversation, such as for a title, was answered and is charged."""

    purpose: SidePurpose
    model: ModelRef
    cost: float
    tokens: TokenUsage


class Deleted(Fact):
    """The last event of a log. Nothing follows it; everything before it is being removed."""


class Forked(Fact):
    """Ends the copied part of a fork's log: the original Session, and its last sequence."""

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
    """Attached content; attachments that are sent as given are not included."""


class PromptRevised(Fact):
    """The whole new content and delivery of a pending prompt."""

    message_id: MessageID
    prompt: Prompt
    delivery: Delivery


class PromptCancelled(Fact):
    """A pending prompt was cancelled and will never be promoted."""

    message_id: MessageID


class InboxReordered(Fact):
    """The new order of these pending prompts."""

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
    """A fact about one assistant message, the response of one Provider Turn."""

    assistant_message_id: MessageID


class StepStarted(StepFact):
    agent: str
    model: ModelRef
    snapshot: str | UnsetType = UNSET
    route: StepRoute | UnsetType = UNSET


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
    """The full text. Deltas are live only and never stored."""

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
    """A fact about one call. Call ids may repeat across turns, not within a message."""

    call_id: ToolCallID


class ToolInputStarted(ToolFact):
    name: str


class ToolInputEnded(ToolFact):
    text: str


class ToolCalled(ToolFact):
    """Recorded before the call takes effect."""

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


class ToolPruned(ToolFact):
    """A compaction replaced a settled result in what the model is sent. History keeps it."""

    path: str | UnsetType = UNSET
    """The file with the whole text; unset if there is none."""


class TodosUpdated(ToolFact):
    """The whole todo list that this call wrote. Commits with the call's success."""

    todos: Todos


class Retried(Fact):
    """A request failed before any of its answer came, or broke off in it, and will be retried."""

    attempt: int
    """The failed attempt, counted from 1."""
    error: RetryError
    """Its `metadata` contains the kind of failure as `reason`, and `answer: continued` if the
    answer of the open step goes on."""
    next: int | UnsetType = UNSET
    """Time of the retry, in milliseconds since the epoch."""


class MessageExcluded(Fact):
    """The user excluded a message, or one result in it, from what the model is sent."""

    message_id: MessageID
    call_id: ToolCallID | UnsetType = UNSET
    """The call whose result is excluded; unset for the whole message."""


class MessageRestored(Fact):
    """The user took an exclusion back."""

    message_id: MessageID
    call_id: ToolCallID | UnsetType = UNSET


class RevertStaged(Fact):
    revert: RevertState


class RevertCleared(Fact):
    pass


class RevertCommitted(Fact):
    message_id: MessageID


ToolEvent = (
    ToolInputStarted
    | ToolInputEnded
    | ToolCalled
    | ToolProgressed
    | ToolSucceeded
    | ToolFailed
    | ToolPruned
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
ExclusionEvent = MessageExcluded | MessageRestored
SessionEvent = (
    SessionCreated
    | AgentSwitched
    | ModelSwitched
    | ModelSubstituted
    | Moved
    | Renamed
    | Archived
    | Unarchived
    | BudgetChanged
    | RulesChanged
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
    | CompactionReported
    | ExclusionEvent
    | RevertStaged
    | RevertCleared
    | RevertCommitted
)
