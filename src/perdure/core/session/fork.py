"""What of a Session's log a fork begins with, and as what. Pure.

A fork is a Session of its own, and its copies have names of their own, which follow from its id.
What was not finished at the cut is left out: an answer under way, calls without a result, prompts
that nobody promoted. So is what was only about the original: its title, its archive, its moves.

Invariant: the same log, cut and id give the same events.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from perdure.schema import ids
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent

_NOT_COPIED: Final = (
    events.SessionCreated,
    events.Renamed,
    events.Archived,
    events.Unarchived,
    events.Moved,
    events.Deleted,
    events.Forked,
    events.PromptRevised,
    events.PromptCancelled,
    events.InboxReordered,
    events.RevertStaged,
    events.RevertCleared,
)
"""A revision is in the promotion that follows it; a staged revert has done nothing yet."""


def copy_events(log: Sequence[SessionEvent], *, into: SessionID) -> tuple[SessionEvent, ...]:
    """`log`, from its first event to the cut, as the fork's own."""
    finished = _finished_messages(log)
    kept = (event for event in log if not isinstance(event, _NOT_COPIED))
    return tuple(_with_new_ids(event, into) for event in kept if _subject(event) in finished)


def _finished_messages(log: Sequence[SessionEvent]) -> set[MessageID | None]:
    """Messages that are whole within the cut; None stands for events that belong to none."""
    found: set[MessageID | None] = {None}
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
            case _:
                pass
    return found - {message_id for message_id, _ in open_calls}


def _subject(event: SessionEvent) -> MessageID | None:
    """The message that must be whole for `event` to be copied."""
    match event:
        case events.PromptAdmitted() | events.PromptPromoted():
            return event.message_id
        case events.CompactionStarted() | events.CompactionEnded():
            return event.message_id
        case events.StepFact():
            return event.assistant_message_id
        case _:
            return None


def _with_new_ids(event: SessionEvent, into: SessionID) -> SessionEvent:
    changes: JsonObject = {"session_id": into}
    for field in ("message_id", "assistant_message_id"):
        if (message_id := getattr(event, field, None)) is not None:
            changes[field] = ids.copied_message(message_id, into=into)
    return structs.replace(event, **changes)
