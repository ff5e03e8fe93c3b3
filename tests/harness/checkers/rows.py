"""Checkers of the log and its rows: no gap, no change, and the rows are the fold of the log."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from perdure.schema import codec
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import (
    AssistantMessage,
    SessionMessage,
    TextPart,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.tool import CompletedState, ErrorState
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import projector
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.ledger import (
    PROJECTED_ROWS,
    PROJECTION_SIZES,
    PROJECTIONS,
    Ledger,
    LoggedEvent,
)
from tests.harness.checkers.reverted import Reverted
from tests.harness.simulation.run_sync import never_waiting

_SHOWN_CHARS_MAX: Final = 600
_EXISTS: Final = "SELECT 1 FROM session_message WHERE id = :id"
_WROTE_A_LIST: Final = "SELECT 1 FROM todo WHERE message_id = :id"
_WITH_MESSAGE: Final = (
    events.PromptAdmitted,
    events.PromptPromoted,
    events.ContextUpdated,
    events.AgentSwitched,
    events.ModelSwitched,
    events.CompactionEnded,
    events.MessageExcluded,
    events.MessageRestored,
)
"""Facts that bring or change one message or one input, beside those of a step."""


class GaplessSequence:
    """From 0, without a gap, and, as is seen at rest, never changed once it was read."""

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
        if seen.at_rest:
            yield from self._check_unchanged(seen)

    def _check_unchanged(self, seen: Seen) -> Iterator[str]:
        for session_id, count, size in seen.clients.machine.ledger.fetch(
            "SELECT session_id, count(*), sum(length(data)) FROM event GROUP BY session_id"
        ):
            known = SessionID(str(session_id))
            if (count, size) != (self._next[known], self._bytes[known]):
                yield f"{known}: the log changed behind its readers"


class ProjectionsEqualFold:
    """The rows are what folding the log, one event at a time, makes of it.

    After a step the rows are compared that it may have touched, and how many there are; at rest
    and after a revert all of them are. The fold is made in `scratch`.
    """

    promise = "P5"

    def __init__(self, scratch: Connection | None = None) -> None:
        self._tx = SqliteTransaction(scratch or new_scratch(), ":memory:")
        self._last_steps: dict[SessionID, MessageID] = {}
        self._unchecked: dict[SessionID, None] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        touched: dict[SessionID, dict[MessageID, None]] = {}
        for item in seen.fresh:
            never_waiting(projector.project(self._tx, item.session_id, item.seq, [item.event]))
            ids = touched.setdefault(item.session_id, {})
            ids.update(dict.fromkeys(self._touched_by(item)))
        self._unchecked.update(dict.fromkeys(touched))
        reverted = any(isinstance(item.event, events.RevertCommitted) for item in seen.fresh)
        ledger = seen.clients.machine.ledger
        if seen.at_rest or reverted:
            for session_id in self._unchecked:
                yield from self._compare(ledger, session_id, PROJECTIONS)
            self._unchecked.clear()
            return
        for session_id, ids in touched.items():
            yield from self._compare(ledger, session_id, PROJECTION_SIZES)
            yield from self._compare(ledger, codec.encode([*ids]).decode(), PROJECTED_ROWS)

    def _touched_by(self, item: LoggedEvent) -> Iterator[MessageID]:
        match item.event:
            case events.StepStarted(assistant_message_id=step):
                yield step
                # A step that starts closes the one before it, if it is still open.
                if before := self._last_steps.get(item.session_id):
                    yield before
                self._last_steps[item.session_id] = step
            case events.StepFact(assistant_message_id=id):
                yield id
            case _:
                if isinstance(item.event, _WITH_MESSAGE):
                    yield item.event.message_id

    def _compare(self, ledger: Ledger, id: str, queries: Mapping[str, str]) -> Iterator[str]:
        for table, sql in queries.items():
            stored = ledger.fetch(sql, id=id)
            folded = list(never_waiting(self._tx.fetch(sql, {"id": id})))
            if stored != folded:
                pairs = zip(stored, folded, strict=False)
                different = [pair for pair in pairs if pair[0] != pair[1]]
                yield (
                    f"{table} of {id} has {len(stored)} rows, the fold {len(folded)};"
                    f" the first that differ: {str(different[:1])[:_SHOWN_CHARS_MAX]}"
                )


def new_scratch() -> Connection:
    """An empty database in memory."""
    connection = sqlite_connection.open_connection(":memory:")
    for number in range(1, migrate.SCHEMA_VERSION + 1):
        connection.execute(migrate.read_migration(number))
    return connection


class MessagesTellTheLog:
    """The transcript says what the log says, by an independent reading of the log."""

    promise = "P5"

    def __init__(self) -> None:
        self._texts: dict[MessageID, dict[str, str]] = {}
        self._calls: dict[MessageID, dict[str, str]] = {}
        self._prompts: dict[MessageID, str] = {}
        self._reverted = Reverted()

    def check(self, seen: Seen) -> Iterator[str]:
        reverted = False
        for item in seen.fresh:
            reverted = self._reverted.boundary(item) is not None or reverted
            self._read(item.event)
        if reverted:
            yield from self._check_gone(seen)
        touched = {_message_of(item.event): item.session_id for item in seen.fresh}
        for message_id, session_id in touched.items():
            if message_id is not None:
                message = seen.clients.machine.ledger.message(session_id, message_id)
                yield from self._check_message(message_id, message)

    def _check_gone(self, seen: Seen) -> Iterator[str]:
        for message_id in sorted(self._reverted.messages):
            if seen.clients.machine.ledger.fetch(_EXISTS, id=message_id):
                yield f"message {message_id} is shown although a revert took it away"
            if seen.clients.machine.ledger.fetch(_WROTE_A_LIST, id=message_id):
                yield f"a list of {message_id} is kept although a revert took that away"

    def _check_message(self, id: MessageID, message: SessionMessage | None) -> Iterator[str]:
        match message:
            case UserMessage(text=text):
                if self._prompts.get(id) != text:
                    yield f"user message {id} is not what was promoted"
            case AssistantMessage():
                yield from self._check_assistant(message)
            case _:
                if id not in self._reverted.messages:
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
