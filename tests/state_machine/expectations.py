"""What must be true of a data directory, in lists and dicts, whatever was done to it.

Fed with the events that were committed since the last look, as another process reads them, and
with the receipts that clients were given. It knows Sessions, their prompts in admission order, and
where each message began; a committed revert takes away what came after its boundary. It asks the
runtime nothing.
"""

import functools
from dataclasses import dataclass, field

from perdure.core.session import recovery
from perdure.ports import Row
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage
from perdure.schema.session.prompt import Delivery
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import projector
from tests.harness.checkers.grammar import LogGrammar
from tests.harness.checkers.ledger import PROJECTIONS, Ledger, LoggedEvent
from tests.harness.simulation.run_sync import never_waiting


@dataclass(slots=True)
class Sent:
    """A prompt as its sender knows it."""

    id: MessageID
    session_id: SessionID
    text: str
    delivery: Delivery
    admitted: Seq | None = None
    """Where the log has it; None when it has not, or a revert took it away."""
    promoted: Seq | None = None
    due: bool = False
    """A run was asked for and not stopped: at rest the prompt must have been promoted."""
    held: bool = False
    """No run was asked for since it was admitted: it must stay pending."""


@dataclass(slots=True)
class Known:
    """A Session as the log tells it."""

    id: SessionID
    log: list[LoggedEvent] = field(default_factory=list[LoggedEvent])
    messages: dict[MessageID, Seq] = field(default_factory=dict[MessageID, Seq])
    grammar: LogGrammar = field(default_factory=LogGrammar)
    reverting: bool = False
    """A revert is staged."""
    left: bool = False
    """The last process ended in the middle of it: the next one settles that in its own time."""


class Expectations:
    def __init__(self, path: str) -> None:
        self.sessions: dict[SessionID, Known] = {}
        self.sent: dict[MessageID, Sent] = {}
        self.sound = True
        """Whether the last look found nothing wrong."""
        self.settling = True
        """Whether the process may still come to what it found at its start."""
        self.ledger = Ledger(path)
        self._version: list[Row] = []
        self._tx = SqliteTransaction(_emptied(), ":memory:")

    def close(self) -> None:
        self.ledger.close()

    # ---- what clients were told -----------------------------------------------------------------

    def receipt(self, receipt: AdmittedPrompt) -> None:
        """P1: a receipt is the admission that the log has, and stays so."""
        self.look()
        sent = self.sent[receipt.id]
        assert sent.admitted == receipt.admitted_seq, (
            f"the receipt of {receipt.id} is not the log's"
        )
        assert (receipt.session_id, receipt.prompt.text) == (sent.session_id, sent.text)
        assert receipt.delivery == sent.delivery

    def wake(self, session_id: SessionID) -> None:
        """A run was asked for: every pending prompt will run."""
        for sent in self.of(session_id):
            sent.due, sent.held = True, False

    def ended(self) -> None:
        """A process is gone: the next one runs what is owed, and settles what was open."""
        self.look()
        self.settling = True
        marked = self.ledger.attempts()
        for known in self.sessions.values():
            known.left = known.id in marked or self._is_unfinished(known.id)

    def settled(self) -> None:
        """The process has done whatever it found at its start."""
        self.settling = False
        for known in self.sessions.values():
            known.left = False

    def may_begin(self, session_id: SessionID) -> bool:
        """Whether a run may begin that this process was not asked for."""
        pending = any(one.promoted is None for one in self.of(session_id))
        return self.settling and (pending or self.sessions[session_id].left)

    def stop(self, session_id: SessionID) -> None:
        """A run was interrupted: prompts that it did not reach may wait for the next one."""
        for sent in self.of(session_id):
            sent.due = sent.held = False

    def hold(self, session_id: SessionID) -> None:
        """A run was interrupted, and none was asked for since: what is pending stays so."""
        for sent in self.of(session_id):
            sent.held = sent.promoted is None

    def decide(self, session_id: SessionID) -> None:
        """A revert has ended: every pending prompt may run from now on."""
        for sent in self.of(session_id):
            sent.held = False

    def of(self, session_id: SessionID) -> list[Sent]:
        """The prompts that the Session has, in admission order."""
        mine = [one for one in self.sent.values() if one.session_id == session_id]
        return sorted((one for one in mine if one.admitted is not None), key=_admission)

    def places(self, session_id: SessionID, *, after: int) -> list[tuple[Seq, bytes]]:
        """What is public of the log after a sequence."""
        self.look()
        log = self.sessions[session_id].log
        return [(item.seq, item.data) for item in log if item.seq > max(after, 0)]

    # ---- what the log says ----------------------------------------------------------------------

    def look(self) -> None:
        """Take in what is new: P2, and of each kind of event what may come at all."""
        version = self.ledger.fetch("PRAGMA data_version")
        if version == self._version and self.sound:
            # Nothing was committed since the last check.
            return
        self.sound = False
        with self.ledger.at_one_moment():
            self._take_in_new()
        self._version = version
        self.sound = True

    def _take_in_new(self) -> None:
        touched: set[SessionID] = set()
        for item in self.ledger.new_events():
            known = self.sessions.setdefault(item.session_id, Known(item.session_id))
            assert item.seq == len(known.log), f"{item.session_id} has {item.seq} out of order"
            known.log.append(item)
            faults = list(known.grammar.read(item.seq, item.event))
            assert not faults, f"{item.session_id}: {faults}"
            self._take_in(known, item)
            never_waiting(projector.project(self._tx, item.session_id, item.seq, [item.event]))
            touched.add(item.session_id)
        for session_id in touched:
            self._check_projections(session_id)
        self._check_prompts()

    def _take_in(self, known: Known, item: LoggedEvent) -> None:
        match item.event:
            case events.PromptAdmitted(message_id=id, prompt=prompt, delivery=delivery):
                sent = self.sent[id]
                assert sent.admitted is None, f"{id} was admitted twice"
                assert (sent.session_id, sent.text) == (item.session_id, prompt.text)
                assert sent.delivery == delivery
                sent.admitted = item.seq
            case events.PromptPromoted(message_id=id):
                assert not known.reverting, f"{id} was promoted behind a staged revert"
                self._promote(id, item.seq)
            case events.RevertStaged():
                known.reverting = True
                self.stop(known.id)
            case events.RevertCleared():
                known.reverting = False
            case events.RevertCommitted(message_id=id):
                known.reverting = False
                self._revert(known, id)
            case _:
                pass
        message_id = _message_begun(item.event)
        if message_id is not None:
            assert message_id not in known.messages, f"message {message_id} begins twice"
            known.messages[message_id] = item.seq

    def _promote(self, id: MessageID, seq: Seq) -> None:
        sent = self.sent[id]
        assert sent.admitted is not None, f"{id} was promoted and never admitted"
        assert sent.promoted is None, f"{id} was promoted twice"
        assert not sent.held, f"{id} was promoted, and no run was asked for"
        for other in self.of(sent.session_id):
            overtaken = other.delivery == sent.delivery and other.promoted is None
            assert not overtaken or _admission(other) >= sent.admitted, f"{id} overtook {other.id}"
        sent.promoted = seq

    def _revert(self, known: Known, boundary: MessageID) -> None:
        last = known.messages[boundary]
        known.messages = {key: seq for key, seq in known.messages.items() if seq <= last}
        for sent in self.of(known.id):
            if _admission(sent) > last or (sent.promoted or 0) > last:
                sent.admitted = sent.promoted = None
                sent.due = sent.held = False

    def _is_unfinished(self, session_id: SessionID) -> bool:
        messages = [row.message() for row in self.ledger.messages(session_id)]
        said = [
            one for one in messages if isinstance(one, AssistantMessage | recovery.InputMessage)
        ]
        return bool(said) and recovery.is_unfinished(said[-1])

    def _check_projections(self, session_id: SessionID) -> None:
        """P5: the rows are what folding the log, one event at a time, makes of it."""
        for table, sql in PROJECTIONS.items():
            folded = list(never_waiting(self._tx.fetch(sql, {"id": session_id})))
            assert self.ledger.fetch(sql, id=session_id) == folded, table

    def _check_prompts(self) -> None:
        """P1: the inbox holds each prompt once, pending or promoted, as the log has it."""
        rows = self.ledger.fetch("SELECT id, admitted_seq, promoted_seq FROM session_input")
        found = {MessageID(str(key)): (admitted, promoted) for key, admitted, promoted in rows}
        assert found == {
            sent.id: (sent.admitted, sent.promoted)
            for sent in self.sent.values()
            if sent.admitted is not None
        }

    def check_unchanged(self) -> None:
        """P2: what was once read never changes."""
        stored = self.ledger.fetch("SELECT session_id, seq, data FROM event")
        assert {(str(key), seq): data for key, seq, data in stored} == {
            (known.id, item.seq): item.data
            for known in self.sessions.values()
            for item in known.log
        }

    def check_rest(self, session_id: SessionID) -> None:
        """P1: once nothing runs, every prompt that was to run has run."""
        pending = [one.id for one in self.of(session_id) if one.due and one.promoted is None]
        if self.sessions[session_id].reverting:
            return
        assert not pending, f"{pending} were never run"


@functools.cache
def _fold() -> Connection:
    """Made once, because an example has no time for a schema of its own."""
    connection = sqlite_connection.open_connection(":memory:")
    for number in range(1, migrate.SCHEMA_VERSION + 1):
        connection.execute(migrate.read_migration(number))
    return connection


def _emptied() -> Connection:
    connection = _fold()
    for table in migrate.fetch_rows(
        connection, "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ):
        connection.execute(f"DELETE FROM {table[0]}")
    return connection


def _admission(sent: Sent) -> Seq:
    assert sent.admitted is not None
    return sent.admitted


def _message_begun(event: SessionEvent) -> MessageID | None:
    match event:
        case (
            events.PromptPromoted(message_id=id)
            | events.AgentSwitched(message_id=id)
            | events.ModelSwitched(message_id=id)
            | events.ContextUpdated(message_id=id)
            | events.SyntheticAdded(message_id=id)
            | events.StepStarted(assistant_message_id=id)
        ):
            return id
        case events.CompactionEnded(message_id=id):
            return id
        case _:
            return None
