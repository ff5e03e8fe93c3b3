"""The projections as a plain fold over events, without a database: what the rows must equal."""

from dataclasses import dataclass, field

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.session import omission, projection
from perdure.ports import Row
from perdure.schema import codec
from perdure.schema.ids import MessageID, Seq
from perdure.schema.session import event as events
from perdure.schema.session.event import MessageEvent, SessionEvent
from perdure.schema.session.message import AssistantMessage, SessionMessage, ShellMessage
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo


@dataclass
class Folded:
    session: SessionInfo | None = None
    messages: dict[MessageID, tuple[int, SessionMessage]] = field(
        default_factory=dict[MessageID, tuple[int, SessionMessage]]
    )
    inbox: dict[MessageID, AdmittedPrompt] = field(default_factory=dict[MessageID, AdmittedPrompt])
    places: dict[MessageID, int] = field(default_factory=dict[MessageID, int])
    cancelled: dict[MessageID, int] = field(default_factory=dict[MessageID, int])
    lists: list[tuple[int, events.TodosUpdated]] = field(
        default_factory=list[tuple[int, events.TodosUpdated]]
    )

    def apply(self, seq: int, event: SessionEvent) -> None:
        if isinstance(event, events.SessionCreated):
            self.session = projection.session_created(event)
            return
        assert self.session is not None
        self.session = projection.session_after(self.session, event)
        self._to_existing(seq, event)
        if isinstance(event, MessageEvent):
            message = projection.message_created(event)
            assert message.id not in self.messages
            self.messages[message.id] = (seq, message)

    def rows(self) -> dict[str, list[Row]]:
        """The public JSON of each projection, as its table must hold it."""
        messages = sorted(self.messages.values(), key=lambda item: item[0])
        inbox = sorted(self.inbox.values(), key=lambda item: item.admitted_seq)
        return {
            "session": [(codec.encode(self.session),)],
            "session_message": [(seq, codec.encode(message)) for seq, message in messages],
            "session_input": [inbox_row(item) for item in inbox],
            "inbox order": [
                (item.id, self.cancelled.get(item.id), self.places[item.id]) for item in inbox
            ],
            "todo": [(seq, event.assistant_message_id) for seq, event in self.lists],
        }

    def _to_existing(self, seq: int, event: SessionEvent) -> None:
        match event:
            case events.PromptAdmitted():
                self._admit(seq, event)
            case events.PromptPromoted(message_id=id):
                if id not in self.inbox:
                    self._admit(seq, event)
                self.inbox[id] = replace(self.inbox[id], promoted_seq=Seq(seq))
            case events.PromptRevised() | events.PromptCancelled() | events.InboxReordered():
                self._change_inbox(seq, event)
            case events.StepStarted():
                self._supersede(event)
            case events.ShellEnded():
                self._end_shell(event)
            case events.TodosUpdated(assistant_message_id=id):
                if id in self.messages:
                    self.lists.append((seq, event))
            case events.RevertCommitted(message_id=id):
                self._revert(id)
            case _:
                self._to_assistant(event)
                self._exclude(event)

    def _change_inbox(
        self,
        seq: int,
        event: events.PromptRevised | events.PromptCancelled | events.InboxReordered,
    ) -> None:
        match event:
            case events.PromptRevised(message_id=id, prompt=prompt, delivery=delivery):
                if self._is_pending(id):
                    self.inbox[id] = replace(self.inbox[id], prompt=prompt, delivery=delivery)
            case events.PromptCancelled(message_id=id):
                if self._is_pending(id):
                    self.cancelled[id] = seq
            case events.InboxReordered(message_ids=ids):
                moved = [moving for moving in ids if self._is_pending(moving)]
                free = sorted(self.places[moving] for moving in moved)
                self.places |= dict(zip(moved, free, strict=True))

    def _is_pending(self, id: MessageID) -> bool:
        entry = self.inbox.get(id)
        return entry is not None and entry.promoted_seq is UNSET and id not in self.cancelled

    def _to_assistant(self, event: SessionEvent) -> None:
        if not isinstance(event, events.AssistantEvent):
            return
        seq, message = self.messages.get(event.assistant_message_id, (0, None))
        if isinstance(message, AssistantMessage):
            changed = projection.assistant_after(message, event)
            self.messages[event.assistant_message_id] = (seq, changed)

    def _exclude(self, event: SessionEvent) -> None:
        if isinstance(event, events.ExclusionEvent) and event.message_id in self.messages:
            seq, message = self.messages[event.message_id]
            changed = omission.after_exclusion(message, event)
            self.messages[event.message_id] = (seq, changed)

    def _admit(self, seq: int, event: events.PromptAdmitted | events.PromptPromoted) -> None:
        self.places[event.message_id] = seq
        self.inbox[event.message_id] = AdmittedPrompt(
            admitted_seq=Seq(seq),
            id=event.message_id,
            session_id=event.session_id,
            prompt=event.prompt,
            delivery=event.delivery,
            time_created=event.timestamp,
        )

    def _supersede(self, event: events.StepStarted) -> None:
        for message_id, (seq, message) in reversed(self._in_order()):
            if isinstance(message, AssistantMessage):
                self.messages[message_id] = (seq, projection.close_superseded(message, event))
                return

    def _end_shell(self, event: events.ShellEnded) -> None:
        for message_id, (seq, message) in reversed(self._in_order()):
            if isinstance(message, ShellMessage) and message.call_id == event.call_id:
                self.messages[message_id] = (seq, projection.shell_after(message, event))
                return

    def _revert(self, id: MessageID) -> None:
        if id not in self.messages:
            return
        boundary = self.messages[id][0]
        self.messages = {k: v for k, v in self.messages.items() if v[0] <= boundary}
        self.lists = [item for item in self.lists if item[1].assistant_message_id in self.messages]
        self.inbox = {
            key: item
            for key, item in self.inbox.items()
            if item.admitted_seq <= boundary
            and (item.promoted_seq is UNSET or item.promoted_seq <= boundary)
        }

    def _in_order(self) -> list[tuple[MessageID, tuple[int, SessionMessage]]]:
        return sorted(self.messages.items(), key=lambda item: item[1][0])


def inbox_row(entry: AdmittedPrompt) -> Row:
    return (
        entry.id,
        codec.encode(entry.prompt),
        entry.delivery,
        entry.admitted_seq,
        None if entry.promoted_seq is UNSET else entry.promoted_seq,
    )


def fold(log: list[SessionEvent]) -> Folded:
    folded = Folded()
    for seq, event in enumerate(log):
        folded.apply(seq, event)
    return folded
