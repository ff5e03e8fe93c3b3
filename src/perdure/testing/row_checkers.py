"""The log and the rows made from it: without a gap, unchanging, and one the fold of the other."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from perdure.schema import session_event as events
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.message import (
    AssistantMessage,
    SessionMessage,
    TextPart,
    ToolPart,
    UserMessage,
)
from perdure.schema.session_event import SessionEvent
from perdure.schema.tool import CompletedState, ErrorState
from perdure.store import migrate, projector
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.testing.checker import Seen
from perdure.testing.ledger import PROJECTIONS
from perdure.testing.never_waiting import never_waiting

_SHOWN_CHARS_MAX: Final = 600


class GaplessSequence:
    """From 0, without a gap, and never changed once it was read."""

    promise = "P2"

    def __init__(self) -> None:
        self._next: Counter[SessionID] = Counter()
        self._bytes: Counter[SessionID] = Counter()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            if item.seq != self._next[item.session_id]:
                yield f"{item.session_id} has {item.seq} after {self._next[item.session_id] - 1}"
            self._next[item.session_id] = item.seq + 1
            self._bytes[item.session_id] += len(item.data)
        for session_id, count, size in seen.clients.machine.ledger.fetch(
            "SELECT session_id, count(*), sum(length(data)) FROM event GROUP BY session_id"
        ):
            known = SessionID(str(session_id))
            if (count, size) != (self._next[known], self._bytes[known]):
                yield f"{known}: the log changed behind its readers"


class ProjectionsEqualFold:
    """The rows are what folding the log, one event at a time, makes of it."""

    promise = "P5"

    def __init__(self) -> None:
        self._connection = sqlite_connection.opened(":memory:")
        for number in range(1, migrate.SCHEMA_VERSION + 1):
            self._connection.execute(migrate.packaged_sql(number))
        self._tx = SqliteTransaction(self._connection, ":memory:")

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            never_waiting(projector.project(self._tx, item.session_id, item.seq, [item.event]))
        for session_id in dict.fromkeys(item.session_id for item in seen.fresh):
            for table in PROJECTIONS:
                stored = seen.clients.machine.ledger.projection(table, session_id)
                folded = list(never_waiting(self._tx.fetch(PROJECTIONS[table], {"id": session_id})))
                if stored != folded:
                    different = [
                        pair for pair in zip(stored, folded, strict=False) if pair[0] != pair[1]
                    ]
                    yield (
                        f"{table} of {session_id} has {len(stored)} rows, the fold {len(folded)};"
                        f" the first that differ: {str(different[:1])[:_SHOWN_CHARS_MAX]}"
                    )


class MessagesTellTheLog:
    """The transcript says what the log says, by a reading of the log that is not ours."""

    promise = "P5"

    def __init__(self) -> None:
        self._texts: dict[MessageID, dict[str, str]] = {}
        self._calls: dict[MessageID, dict[str, str]] = {}
        self._prompts: dict[MessageID, str] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            self._read(item.event)
        touched = {_message_of(item.event): item.session_id for item in seen.fresh}
        for message_id, session_id in touched.items():
            if message_id is not None:
                message = seen.clients.machine.ledger.message(session_id, message_id)
                yield from self._check_message(message_id, message)

    def _check_message(self, id: MessageID, message: SessionMessage | None) -> Iterator[str]:
        match message:
            case UserMessage(text=text):
                if self._prompts.get(id) != text:
                    yield f"user message {id} is not what was promoted"
            case AssistantMessage():
                yield from self._check_assistant(message)
            case _:
                yield f"message {id} is in the log and not in the transcript"

    def _read(self, event: SessionEvent) -> None:
        match event:
            case events.PromptPromoted(message_id=id, prompt=prompt):
                self._prompts[id] = prompt.text
            case events.StepStarted(assistant_message_id=id):
                self._texts[id], self._calls[id] = {}, {}
            case events.TextEnded(assistant_message_id=id, text_id=part, text=text):
                self._texts[id][part] = text
            case events.ToolSucceeded(assistant_message_id=id, call_id=call):
                self._calls[id].setdefault(call, "completed")
            case events.ToolFailed(assistant_message_id=id, call_id=call):
                self._calls[id].setdefault(call, "error")
            case _:
                pass

    def _check_assistant(self, message: AssistantMessage) -> Iterator[str]:
        texts = {part.id: part.text for part in message.content if isinstance(part, TextPart)}
        said = self._texts[message.id]
        if any(texts.get(part) != text for part, text in said.items()):
            yield f"message {message.id} does not say what was said"
        settled = {
            part.id: "completed" if isinstance(part.state, CompletedState) else "error"
            for part in message.content
            if isinstance(part, ToolPart) and isinstance(part.state, CompletedState | ErrorState)
        }
        if settled != self._calls[message.id]:
            yield f"message {message.id} shows calls {settled}, settled {self._calls[message.id]}"


def _message_of(event: SessionEvent) -> MessageID | None:
    """The message of the transcript that this event brings or changes."""
    match event:
        case events.PromptPromoted(message_id=id) | events.StepFact(assistant_message_id=id):
            return id
        case _:
            return None
