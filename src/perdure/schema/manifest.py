"""The table of durable events: stored name -> shape, for every version.

A payload that changes gets the next version beside the old one, and an upcast from the old to the
new; projections only see current values. Stored names do not follow class names, so a rename in
code cannot orphan a stored log.
"""

from collections.abc import Callable, Mapping
from typing import Final

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.value import Value


class UnknownEventError(Exception):
    """A stored or replayed name that this version does not know."""

    def __init__(self, stored: str) -> None:
        super().__init__(f"unknown durable event {stored!r}")
        self.stored = stored


Shape = type[SessionEvent]


class Definition(Value):
    """One durable event at one version."""

    type: str
    version: int
    shape: Shape
    followed: bool = True
    """Whether the stream and the history of a Session tell it. The live stream tells all."""

    @property
    def stored(self) -> str:
        return f"{self.type}.{self.version}"


Upcast = Callable[[JsonObject], JsonObject]
"""Converts the JSON of an older version to the next one."""

DEFINITIONS: Final = (
    # The event with seq 0 of every Session. The Session's own stream starts after it.
    Definition("session.created", 1, events.SessionCreated, followed=False),
    Definition("session.next.agent.switched", 1, events.AgentSwitched),
    Definition("session.next.model.switched", 1, events.ModelSwitched),
    Definition("session.next.model.substituted", 1, events.ModelSubstituted),
    Definition("session.next.moved", 1, events.Moved),
    Definition("session.next.renamed", 1, events.Renamed),
    Definition("session.next.archived", 1, events.Archived),
    Definition("session.next.unarchived", 1, events.Unarchived),
    Definition("session.next.budget.changed", 1, events.BudgetChanged),
    Definition("session.next.rules.changed", 1, events.RulesChanged),
    Definition("session.next.spent", 1, events.Spent),
    Definition("session.next.deleted", 1, events.Deleted),
    Definition("session.next.forked", 1, events.Forked),
    Definition("session.next.prompt.admitted", 1, events.PromptAdmitted),
    Definition("session.next.prompted", 1, events.PromptPromoted),
    Definition("session.next.prompt.revised", 1, events.PromptRevised),
    Definition("session.next.prompt.cancelled", 1, events.PromptCancelled),
    Definition("session.next.inbox.reordered", 1, events.InboxReordered),
    Definition("session.next.context.updated", 1, events.ContextUpdated),
    Definition("session.next.synthetic", 1, events.SyntheticAdded),
    Definition("session.next.shell.started", 1, events.ShellStarted),
    Definition("session.next.shell.ended", 1, events.ShellEnded),
    Definition("session.next.step.started", 1, events.StepStarted),
    Definition("session.next.step.ended", 2, events.StepEnded),
    Definition("session.next.step.failed", 2, events.StepFailed),
    Definition("session.next.text.started", 1, events.TextStarted),
    Definition("session.next.text.ended", 1, events.TextEnded),
    Definition("session.next.reasoning.started", 1, events.ReasoningStarted),
    Definition("session.next.reasoning.ended", 1, events.ReasoningEnded),
    Definition("session.next.tool.input.started", 1, events.ToolInputStarted),
    Definition("session.next.tool.input.ended", 1, events.ToolInputEnded),
    Definition("session.next.tool.called", 1, events.ToolCalled),
    Definition("session.next.tool.progress", 1, events.ToolProgressed),
    Definition("session.next.tool.success", 1, events.ToolSucceeded),
    Definition("session.next.tool.failed", 1, events.ToolFailed),
    Definition("session.next.tool.pruned", 1, events.ToolPruned),
    Definition("session.next.todo.updated", 1, events.TodosUpdated),
    Definition("session.next.retried", 1, events.Retried),
    Definition("session.next.compaction.started", 1, events.CompactionStarted),
    Definition("session.next.compaction.ended", 1, events.CompactionEnded),
    Definition("session.next.compaction.reported", 1, events.CompactionReported),
    Definition("session.next.message.excluded", 1, events.MessageExcluded),
    Definition("session.next.message.restored", 1, events.MessageRestored),
    Definition("session.next.revert.staged", 1, events.RevertStaged),
    Definition("session.next.revert.cleared", 1, events.RevertCleared),
    Definition("session.next.revert.committed", 1, events.RevertCommitted),
)

UPCASTS: Final[Mapping[str, Upcast]] = {}
"""Stored name of an old version -> the upcast to the next version."""


def index(definitions: tuple[Definition, ...]) -> dict[str, Definition]:
    """Stored name -> definition. Raises ValueError if a stored name is defined twice."""
    table: dict[str, Definition] = {}
    for definition in definitions:
        if definition.stored in table:
            raise ValueError(f"durable event {definition.stored} is defined twice")
        table[definition.stored] = definition
    return table


def latest(definitions: tuple[Definition, ...]) -> dict[Shape, Definition]:
    """Shape -> its highest version."""
    table: dict[Shape, Definition] = {}
    for definition in definitions:
        known = table.get(definition.shape)
        if known is None or known.version < definition.version:
            table[definition.shape] = definition
    return table


BY_STORED: Final = index(DEFINITIONS)
BY_SHAPE: Final = latest(DEFINITIONS)


def definition_of(event: SessionEvent) -> Definition:
    return BY_SHAPE[type(event)]


def decode(stored: str, data: bytes) -> SessionEvent:
    """Decode a stored event of any version to its current value."""
    return decode_with(BY_STORED, UPCASTS, stored, data)


def decode_with(
    table: Mapping[str, Definition], upcasts: Mapping[str, Upcast], stored: str, data: bytes
) -> SessionEvent:
    if stored not in upcasts:
        definition = table.get(stored)
        if definition is None:
            raise UnknownEventError(stored)
        return codec.decode(definition.shape, data)
    value = codec.decode_any(data)
    while stored in upcasts:
        value = upcasts[stored](value)
        name, _, version = stored.rpartition(".")
        stored = f"{name}.{int(version) + 1}"
    if stored not in table:
        raise UnknownEventError(stored)
    return codec.convert(table[stored].shape, value)
