"""The database of a simulation, read from outside through a connection of its own.

What it answers is what another process would find: committed rows and nothing else. It never
writes and never waits, so that a checker sees one moment.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TypeGuard

from perdure.core.context.system_context import ContextEpoch
from perdure.ports import Row
from perdure.schema import manifest
from perdure.schema.ids import EventID, MessageID, Seq, SessionID
from perdure.schema.session.event import (
    ExclusionEvent,
    Forked,
    PromptAdmitted,
    SessionEvent,
)
from perdure.schema.session.message import SessionMessage
from perdure.schema.value import State, Value
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.log import event_store
from perdure.store.processes import lease_table
from perdure.store.processes.lease_table import Lease
from perdure.store.tables import epoch_table, message_table, pending_table
from perdure.store.tables.message_table import MessageRow
from perdure.store.tables.pending_table import PendingRow
from tests.harness.simulation.run_sync import never_waiting

PROJECTIONS: Final = {
    "session": "SELECT * FROM session WHERE id = :id",
    "session_message": "SELECT * FROM session_message WHERE session_id = :id ORDER BY seq",
    "session_input": "SELECT * FROM session_input WHERE session_id = :id ORDER BY id",
    "todo": "SELECT * FROM todo WHERE session_id = :id ORDER BY seq",
}
"""Each table that is made from the log, and how the rows of one Session are read."""

PROJECTION_SIZES: Final = {
    "session": "SELECT * FROM session WHERE id = :id",
    "session_message": "SELECT count(*) FROM session_message WHERE session_id = :id",
    "session_input": (
        "SELECT * FROM session_input WHERE session_id = :id"
        " AND promoted_seq IS NULL AND cancelled_seq IS NULL"
    ),
}
"""What of them can be compared without reading all of it."""

_GIVEN: Final = "id IN (SELECT value FROM json_each(:id)) ORDER BY id"
PROJECTED_ROWS: Final = {
    "session_message": f"SELECT * FROM session_message WHERE {_GIVEN}",
    "session_input": f"SELECT * FROM session_input WHERE {_GIVEN}",
}
"""The rows of some messages, given as a JSON array."""

_NEW: Final = (
    "SELECT rowid, session_id, seq, id, type, data FROM event WHERE rowid > :after ORDER BY rowid"
)
_WAITING: Final = (
    "SELECT id, session_id FROM session_input"
    " WHERE promoted_seq IS NULL AND cancelled_seq IS NULL ORDER BY place"
)
_IDS: Final = (
    "SELECT seq, id FROM event WHERE session_id = :session_id AND seq BETWEEN :first AND :last"
)
_ARCHIVED: Final = "SELECT id FROM session WHERE archived = 1"


class Waiting(Value):
    """A prompt that is still to be promoted."""

    id: MessageID
    session_id: SessionID


class LoggedEvent(State):
    session_id: SessionID
    seq: Seq
    id: EventID
    event: SessionEvent
    data: bytes
    copied: bool = False
    """Whether it was in the log that a fork goes on from."""


class Ledger:
    def __init__(self, path: str) -> None:
        self._connection = sqlite_connection.open_connection(path)
        self._connection.pragma("query_only", True)
        self._tx = SqliteTransaction(self._connection, path)
        self._row = 0

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def at_one_moment(self) -> Generator[None]:
        """All reads in this scope see the same moment, in one transaction."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    def new_events(self) -> list[LoggedEvent]:
        """Everything committed since this was last asked, in commit order."""
        logged: list[LoggedEvent] = []
        copies: dict[SessionID, Seq] = {}
        for row in self.fetch(_NEW, after=self._row):
            self._row, item = _logged(row)
            logged.append(item)
            if isinstance(item.event, Forked):
                copies[item.session_id] = item.seq
        # A fork is one commit: a reader that sees its end sees all of it.
        for item in logged if copies else ():
            item.copied = item.seq < copies.get(item.session_id, 0)
        return logged

    def messages(self, session_id: SessionID) -> list[MessageRow]:
        return never_waiting(message_table.list_after(self._tx, session_id, Seq(-1)))

    def message(self, session_id: SessionID, message_id: MessageID) -> SessionMessage | None:
        row = never_waiting(message_table.get(self._tx, session_id, message_id))
        return None if row is None else row.message()

    def epoch(self, session_id: SessionID) -> ContextEpoch | None:
        return never_waiting(epoch_table.get(self._tx, session_id))

    def compaction(self, session_id: SessionID) -> Seq | None:
        return never_waiting(message_table.latest_compaction(self._tx, session_id))

    def lease(self, session_id: SessionID) -> Lease | None:
        return never_waiting(lease_table.get(self._tx, session_id))

    def waiting(self) -> list[Waiting]:
        """Prompts of all Sessions, in the order in which each will promote its own."""
        return [
            Waiting(MessageID(str(message_id)), SessionID(str(session_id)))
            for message_id, session_id in self.fetch(_WAITING)
        ]

    def pending(self) -> list[PendingRow]:
        """Permissions and questions in the table of pending requests."""
        return never_waiting(pending_table.list_all(self._tx))

    def latest(self, session_id: SessionID) -> Seq:
        return never_waiting(event_store.latest_seq(self._tx, session_id))

    def attempts(self) -> dict[SessionID, str]:
        """Sessions whose run owes a request, and how far that has come."""
        rows = self.fetch("SELECT session_id, state FROM session_attempt ORDER BY session_id")
        return {SessionID(str(session_id)): str(state) for session_id, state in rows}

    def interrupted(self) -> set[SessionID]:
        """Sessions with an interrupt that has yet to be obeyed."""
        rows = self.fetch("SELECT session_id FROM session_interrupt")
        return {SessionID(str(row[0])) for row in rows}

    def undecided(self) -> list[SessionID]:
        """Sessions that wait for a person to decide what a crash left."""
        rows = self.fetch(
            "SELECT session_id FROM session_attempt WHERE waits IS NOT NULL ORDER BY session_id"
        )
        return [SessionID(str(row[0])) for row in rows]

    def below(self, session_id: SessionID) -> list[SessionID]:
        """The Session and all its descendants."""
        rows = self.fetch(
            "WITH RECURSIVE down (id) AS (VALUES (:id) UNION SELECT s.id FROM session AS s"
            " JOIN down ON s.parent_id = down.id) SELECT id FROM down",
            id=session_id,
        )
        return [SessionID(str(row[0])) for row in rows]

    def admission(self, message_id: MessageID) -> PromptAdmitted:
        ((stored, data),) = self.fetch(
            "SELECT e.type, e.data FROM session_input AS i"
            " JOIN event AS e ON e.session_id = i.session_id AND e.seq = i.admitted_seq"
            " WHERE i.id = :id",
            id=message_id,
        )
        assert isinstance(data, bytes)
        event = manifest.decode(str(stored), data)
        assert isinstance(event, PromptAdmitted)
        return event

    def tasks(self) -> dict[MessageID, tuple[SessionID, str]]:
        """Tasks of children by their prompt, and whether the parent was told of the end."""
        rows = self.fetch(
            "SELECT message_id, session_id, state FROM child_task ORDER BY message_id"
        )
        return {
            MessageID(str(task)): (SessionID(str(child)), str(state)) for task, child, state in rows
        }

    def archived(self) -> set[SessionID]:
        """Archived Sessions: only a person wakes them."""
        return {SessionID(str(row[0])) for row in self.fetch(_ARCHIVED)}

    def notices(self) -> dict[MessageID, SessionID]:
        """What Sessions have yet to be told."""
        rows = self.fetch("SELECT id, session_id FROM session_notice ORDER BY id")
        return {MessageID(str(notice)): SessionID(str(told)) for notice, told in rows}

    def reverting(self) -> list[SessionID]:
        """Sessions with a staged revert."""
        rows = self.fetch("SELECT id FROM session WHERE reverting = 1 ORDER BY id")
        return [SessionID(str(row[0])) for row in rows]

    def reverted_since(self, session_id: SessionID, seq: Seq) -> bool:
        """Whether a revert was committed after that sequence, and may have taken it away."""
        found = self.fetch(
            "SELECT 1 FROM event WHERE session_id = :id AND seq > :seq"
            " AND type LIKE 'session.next.revert.committed.%' LIMIT 1",
            id=session_id,
            seq=seq,
        )
        return bool(found)

    def exclusions(self, session_id: SessionID, after: Seq) -> list[ExclusionEvent]:
        """What the user excluded and restored after a sequence."""
        rows = self.fetch(
            "SELECT type, data FROM event WHERE session_id = :id AND seq > :after"
            " AND type LIKE 'session.next.message.%' ORDER BY seq",
            id=session_id,
            after=after,
        )
        found = (manifest.decode(str(stored), data) for stored, data in rows if _is_bytes(data))
        return [event for event in found if isinstance(event, ExclusionEvent)]

    def event_ids(self, session_id: SessionID, first: Seq, last: Seq) -> dict[Seq, EventID]:
        """Which events stand in the log from one sequence to another."""
        rows = self.fetch(_IDS, session_id=session_id, first=first, last=last)
        return {Seq(seq): EventID(str(event_id)) for seq, event_id in rows if isinstance(seq, int)}

    def fetch(self, sql: str, **parameters: str | int) -> list[Row]:
        return list(never_waiting(self._tx.fetch(sql, parameters)))


def _is_bytes(data: object) -> TypeGuard[bytes]:
    return isinstance(data, bytes)


def _logged(row: Row) -> tuple[int, LoggedEvent]:
    """The number of a row of the log, and what it holds."""
    number, session_id, seq, event_id, stored, data = row
    assert isinstance(number, int)
    assert isinstance(seq, int)
    assert isinstance(data, bytes)
    event = manifest.decode(str(stored), data)
    return number, LoggedEvent(
        SessionID(str(session_id)), Seq(seq), EventID(str(event_id)), event, data
    )
