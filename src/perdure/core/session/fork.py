"""Which events of a Session's log a fork copies, and with which ids.

A fork is a Session of its own; the ids of its copies are derived from its id. Work that was not
finished at the cut is left out: an answer in progress, calls without a result, prompts that were
not promoted. So is what concerns only the original: its title, archiving and moves.

Invariant: the same log, cut and id give the same events.
"""

from collections.abc import Iterable, Sequence
from typing import assert_never

from msgspec import structs

from perdure.schema import ids
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, ExclusionEvent, SessionEvent

_OriginalOnly = (
    events.SessionCreated
    | events.Renamed
    | events.Archived
    | events.Unarchived
    | events.Moved
    | events.Deleted
    | events.Forked
    | events.PromptRevised
    | events.PromptCancelled
    | events.InboxReordered
    | events.RevertStaged
    | events.RevertCleared
    | events.CompactionReported
)
"""Not copied. A revision is in the promotion that follows it; a staged revert has done nothing."""
_Whole = (
    events.AgentSwitched
    | events.ModelSwitched
    | events.ModelSubstituted
    | events.BudgetChanged
    | events.RulesChanged
    | events.Spent
    | events.ContextUpdated
    | events.SyntheticAdded
    | events.ShellStarted
    | events.ShellEnded
    | events.Retried
    | events.RevertCommitted
    | ExclusionEvent
)
"""Always copied: depends on no message that may be unfinished at the cut, or has no effect then."""
_OfMessage = (
    events.PromptAdmitted
    | events.PromptPromoted
    | events.CompactionStarted
    | events.CompactionEnded
    | events.StepStarted
    | events.TodosUpdated
    | AssistantEvent
)
"""Copied if its message is finished within the cut."""


def copy_events(log: Sequence[SessionEvent], *, into: SessionID) -> tuple[SessionEvent, ...]:
    """`log`, from its first event to the cut, as the fork's own."""
    kept = [event for event in _without_open_shells(log) if not isinstance(event, _OriginalOnly)]
    finished = _finished_messages(event for event in kept if not isinstance(event, _Whole))
    return tuple(
        _with_new_ids(event, into)
        for event in kept
        if isinstance(event, _Whole) or _message_of(event) in finished
    )


def _without_open_shells(log: Sequence[SessionEvent]) -> Iterable[SessionEvent]:
    """The log without a command of the user that still runs at the cut."""
    ended = {event.call_id for event in log if isinstance(event, events.ShellEnded)}
    return (e for e in log if not isinstance(e, events.ShellStarted) or e.call_id in ended)


def _finished_messages(log: Iterable[_OfMessage]) -> set[MessageID]:
    """Return the messages that are whole within the cut."""
    found: set[MessageID] = set()
    open_calls: set[tuple[MessageID, ToolCallID]] = set()
    for event in log:
        match event:
            case events.PromptPromoted() | events.CompactionEnded():
                found.add(event.message_id)
            case events.StepEnded() | events.StepFailed():
                found.add(event.assistant_message_id)
            case events.ToolInputStarted() | events.ToolCalled():
                open_calls.add((event.assistant_message_id, event.call_id))
            case events.ToolSucceeded() | events.ToolFailed():
                open_calls.discard((event.assistant_message_id, event.call_id))
            case (
                events.PromptAdmitted()
                | events.CompactionStarted()
                | events.StepStarted()
                | events.TodosUpdated()
                | events.TextStarted()
                | events.TextEnded()
                | events.ReasoningStarted()
                | events.ReasoningEnded()
                | events.ToolInputEnded()
                | events.ToolProgressed()
                | events.ToolPruned()
            ):
                pass  # They finish nothing and open no call.
            case _:
                assert_never(event)
    return found - {message_id for message_id, _ in open_calls}


def _message_of(event: _OfMessage) -> MessageID:
    """Return the message that must be whole for `event` to be copied."""
    match event:
        case events.PromptAdmitted() | events.PromptPromoted():
            return event.message_id
        case events.CompactionStarted() | events.CompactionEnded():
            return event.message_id
        case events.StepFact():
            return event.assistant_message_id
        case _:
            assert_never(event)


def _with_new_ids(event: SessionEvent, into: SessionID) -> SessionEvent:
    changes: JsonObject = {"session_id": into}
    for field in ("message_id", "assistant_message_id"):
        if (message_id := getattr(event, field, None)) is not None:
            changes[field] = ids.copied_message(message_id, into=into)
    return structs.replace(event, **changes)
