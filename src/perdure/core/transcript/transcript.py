"""The conversation of one Session, from a snapshot on: messages, inbox, todos and status.

Durable events are taken in the order of the log, each once: an event that was seen, or that does
not follow the last one, changes nothing. So a client may read two streams that overlap: the live
stream, which has fragments and the events of one process, and the durable one, which has all.

Invariant: after the events up to `seq` this equals a snapshot at `seq`, unless it `is_stale`.
"""

from collections.abc import Iterable, Mapping
from heapq import merge
from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.session import omission, projection
from perdure.core.transcript.answer_stream import StreamedAnswer
from perdure.core.transcript.change import (
    Change,
    InboxChanged,
    MessageAdded,
    MessageChanged,
    MessagesRemoved,
    Noticed,
    PartChanged,
    SessionChanged,
    SessionRemoved,
    StatusReported,
    TodosWritten,
)
from perdure.schema.ids import MessageID, Seq
from perdure.schema.live_event import (
    LiveEvent,
    ReasoningDelta,
    StatusChanged,
    TextDelta,
    ToolInputDelta,
)
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, MessageEvent, SessionEvent
from perdure.schema.session.message import AssistantMessage, SessionMessage, ShellMessage
from perdure.schema.session.prompt import Delivery
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.snapshot import SessionSnapshot
from perdure.schema.session.status import SessionIdle, SessionStatus
from perdure.schema.session.todo import Todos

_Ignored = (
    events.SessionCreated
    | events.AgentSwitched
    | events.ModelSwitched
    | events.ModelSubstituted
    | events.Moved
    | events.Renamed
    | events.Archived
    | events.Unarchived
    | events.BudgetChanged
    | events.RulesChanged
    | events.Spent
    | events.Forked
    | events.RevertStaged
    | events.RevertCleared
)
"""Changes nothing but the Session's own record, if that."""
_InboxEvent = (
    events.PromptAdmitted | events.PromptRevised | events.PromptCancelled | events.InboxReordered
)


class Transcript:
    def __init__(self, snapshot: SessionSnapshot, todos: Todos = ()) -> None:
        self._session = snapshot.session
        self._seq = snapshot.seq
        self._messages: dict[MessageID, SessionMessage] = {m.id: m for m in snapshot.messages}
        by_place = merge(
            *(_of_delivery(snapshot.inbox, delivery) for delivery in ("steer", "queue")),
            key=lambda prompt: prompt.admitted_seq,
        )
        self._inbox: dict[MessageID, AdmittedPrompt] = {prompt.id: prompt for prompt in by_place}
        """In the order of their places, which a change of the delivery keeps."""
        self._answer: StreamedAnswer | None = None
        self._todos = todos
        self._status: SessionStatus = SessionIdle()
        self._is_stale = False
        self._has_earlier = snapshot.cursor.previous is not UNSET
        answers = [m for m in snapshot.messages if isinstance(m, AssistantMessage)]
        if answers and answers[-1].time.completed is UNSET:
            self._answer = StreamedAnswer(answers[-1])

    # ---- what it shows --------------------------------------------------------------------------

    @property
    def session(self) -> SessionInfo:
        return self._session

    @property
    def seq(self) -> Seq:
        """The last event of the log that is part of this."""
        return self._seq

    @property
    def messages(self) -> Mapping[MessageID, SessionMessage]:
        """The messages in order, with what the open answer says so far."""
        if self._answer is not None:
            self._messages[self._answer.id] = self._answer.message
        return self._messages

    @property
    def inbox(self) -> tuple[AdmittedPrompt, ...]:
        """The prompts that wait: steers before the queue."""
        return tuple(sorted(self._inbox.values(), key=lambda prompt: prompt.delivery == "queue"))

    @property
    def todos(self) -> Todos:
        return self._todos

    @property
    def status(self) -> SessionStatus:
        return self._status

    @property
    def is_stale(self) -> bool:
        """Whether only a new snapshot can tell which prompts and todos a revert has left."""
        return self._is_stale

    def prepend(self, earlier: Iterable[SessionMessage], *, is_first_page: bool = False) -> None:
        """Add a page of messages before those that are known, oldest first."""
        self._has_earlier = not is_first_page
        self._messages = {message.id: message for message in earlier} | self._messages

    # ---- events ---------------------------------------------------------------------------------

    def apply_live(self, event: LiveEvent) -> tuple[Change, ...]:
        match event:
            case TextDelta() | ReasoningDelta() | ToolInputDelta():
                answer = self._answer
                if answer is None or answer.id != event.assistant_message_id:
                    return ()
                return answer.append(event)
            case StatusChanged(session_id=session_id, status=status):
                if session_id != self._session.id:
                    return ()
                self._status = status
                return (StatusReported(status),)
            case _:
                return ()

    def apply_durable(self, seq: Seq, event: SessionEvent | None) -> tuple[Change, ...]:
        """Take the event at `seq`; None is an event that this version does not know."""
        if seq != self._seq + 1:
            return ()
        self._seq = seq
        if event is None:
            return ()
        if isinstance(event, projection.LeavesSession):
            return self._apply(event)
        self._session = projection.session_after(self._session, event)
        return (*self._apply(event), SessionChanged(self._session))

    def _apply(self, event: SessionEvent) -> tuple[Change, ...]:
        if isinstance(event, AssistantEvent):
            return self._apply_to_answer(event)
        if isinstance(event, MessageEvent):
            return self._add(event)
        if isinstance(event, _InboxEvent):
            self._change_inbox(event)
            return (InboxChanged(self.inbox),)
        return self._apply_rare(event)

    def _apply_rare(self, event: SessionEvent) -> tuple[Change, ...]:
        match event:
            case events.TodosUpdated(todos=todos, assistant_message_id=id):
                if id not in self._messages:
                    return ()
                self._todos = todos
                return (TodosWritten(todos),)
            case events.MessageExcluded(message_id=id) | events.MessageRestored(message_id=id):
                message = self.messages.get(id)
                return () if message is None else self._mark(message, event)
            case events.ShellEnded():
                return self._end_shell(event)
            case events.RevertCommitted(message_id=id):
                return self._revert(id)
            case events.Retried() | events.CompactionStarted() | events.CompactionReported():
                return (Noticed(event),)
            case events.Deleted():
                return (SessionRemoved(),)
            case _:
                assert isinstance(event, _Ignored)
                return ()

    # ---- messages -------------------------------------------------------------------------------

    def _add(self, event: MessageEvent) -> tuple[Change, ...]:
        changes: list[Change] = []
        if isinstance(event, events.StepStarted):
            changes += self._close_answer(event)
        message = projection.message_created(event)
        self._messages[message.id] = message
        changes.append(MessageAdded(message))
        if isinstance(message, AssistantMessage):
            self._answer = StreamedAnswer(message)
        if isinstance(event, events.PromptPromoted) and self._inbox.pop(event.message_id, None):
            changes.append(InboxChanged(self.inbox))
        return tuple(changes)

    def _close_answer(self, event: events.StepStarted) -> tuple[Change, ...]:
        """Close an answer whose process is gone."""
        if self._answer is None:
            return ()
        closed = projection.close_superseded(self._answer.message, event)
        self._messages[closed.id] = closed
        self._answer = None
        return (MessageChanged(closed),)

    def _apply_to_answer(self, event: AssistantEvent) -> tuple[Change, ...]:
        answer = self._answer
        if answer is None or answer.id != event.assistant_message_id:
            return self._apply_to_earlier(event)
        changes = answer.apply(event)
        if isinstance(event, events.StepEnded | events.StepFailed):
            self._messages[answer.id] = answer.message
            self._answer = None
        return changes

    def _apply_to_earlier(self, event: AssistantEvent) -> tuple[Change, ...]:
        """Change an answer that has ended: its calls may be settled or pruned later."""
        message = self._messages.get(event.assistant_message_id)
        if not isinstance(message, AssistantMessage):
            return ()
        answer = StreamedAnswer(message)
        changes = answer.apply(event)
        self._messages[message.id] = answer.message
        return changes

    def _mark(self, message: SessionMessage, event: events.ExclusionEvent) -> tuple[Change, ...]:
        marked = omission.after_exclusion(message, event)
        self._messages[marked.id] = marked
        answer = self._answer
        if answer is not None and answer.id == marked.id and isinstance(marked, AssistantMessage):
            answer.mark(marked)
        if event.call_id is UNSET:
            return (MessageChanged(marked),)
        calls = [part for part in omission.calls_of(marked) if part.id == event.call_id]
        return tuple(PartChanged(marked.id, part) for part in calls)

    def _end_shell(self, event: events.ShellEnded) -> tuple[Change, ...]:
        for message in reversed(self._messages.values()):
            if isinstance(message, ShellMessage) and message.call_id == event.call_id:
                ended = projection.shell_after(message, event)
                self._messages[ended.id] = ended
                return (MessageChanged(ended),)
        return ()

    def _revert(self, boundary: MessageID) -> tuple[Change, ...]:
        order = list(self._messages)
        if boundary in self._messages:
            removed = order[order.index(boundary) + 1 :]
        else:
            # The boundary is on an earlier page, or nowhere.
            removed = order if self._has_earlier else []
        for message_id in removed:
            del self._messages[message_id]
        if self._answer is not None and self._answer.id in removed:
            self._answer = None
        self._is_stale = self._is_stale or bool(removed and (self._inbox or self._todos))
        return (MessagesRemoved(tuple(removed)),)

    # ---- the inbox ------------------------------------------------------------------------------

    def _change_inbox(self, event: _InboxEvent) -> None:
        match event:
            case events.PromptAdmitted(message_id=id):
                self._inbox[id] = AdmittedPrompt(
                    admitted_seq=self._seq,
                    id=id,
                    session_id=event.session_id,
                    prompt=event.prompt,
                    delivery=event.delivery,
                    time_created=event.timestamp,
                )
            case events.PromptRevised(message_id=id, prompt=prompt, delivery=delivery):
                if id in self._inbox:
                    self._inbox[id] = replace(self._inbox[id], prompt=prompt, delivery=delivery)
            case events.PromptCancelled(message_id=id):
                self._inbox.pop(id, None)
            case events.InboxReordered(message_ids=ids):
                self._reorder(ids)
            case _:
                assert_never(event)

    def _reorder(self, message_ids: tuple[MessageID, ...]) -> None:
        """Distribute the places of these prompts among them, in this order."""
        moved = iter([prompt for prompt in message_ids if prompt in self._inbox])
        named = frozenset(message_ids)
        order = [next(moved) if prompt in named else prompt for prompt in self._inbox]
        self._inbox = {prompt: self._inbox[prompt] for prompt in order}


def _of_delivery(inbox: tuple[AdmittedPrompt, ...], delivery: Delivery) -> list[AdmittedPrompt]:
    return [prompt for prompt in inbox if prompt.delivery == delivery]
