"""Sessions that are being deleted: their log ends with `deleted`, and their rows are removed.

A deletion begins in the transaction of its event: from then on no query finds the Session, and
nothing can be appended. Messages and events may be many and are removed in batches, the last event
last, so that another process can finish what a dead one began.

Invariant: a Session has an entry here from its last event to the removal of its last row.
"""

from typing import Final

from perdure.ports import Transaction
from perdure.schema import manifest
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Deleted, ToolPruned, ToolSucceeded
from perdure.store.tables import row_checks

_ROWS: Final = """
    DELETE FROM {table} WHERE rowid IN
        (SELECT rowid FROM {table} WHERE session_id = :id {condition} ORDER BY seq LIMIT :limit)
"""
_MESSAGES: Final = _ROWS.format(table="session_message", condition="")
_EVENTS: Final = _ROWS.format(table="event", condition="AND type <> :last")
_LAST: Final = manifest.BY_SHAPE[Deleted].stored
_WITH_PATHS: Final = frozenset(
    manifest.BY_SHAPE[shape].stored for shape in (ToolSucceeded, ToolPruned)
)
_FEW: Final = (
    "event_owner",
    "todo",
    "session_input",
    "session_context_epoch",
    "session_instruction",
    "session_retry",
    "session_attempt",
    "session_file_change",
    "session_revert_file",
    "session_lease",
    "session_interrupt",
    "session_wake",
    "session_notice",
    "job",
    "pending_request",
    "approval",
    "child_task",
)
"""Tables that hold few rows of a Session, or whose rows must disappear when it is deleted."""


async def begin(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session WHERE id = :id", {"id": session_id})
    for table in _FEW:
        await tx.execute(f"DELETE FROM {table} WHERE session_id = :id", {"id": session_id})
    await tx.execute(
        "INSERT OR REPLACE INTO session_deletion (session_id) VALUES (:id)", {"id": session_id}
    )


async def list_sessions(tx: Transaction) -> frozenset[SessionID]:
    rows = await tx.fetch("SELECT session_id FROM session_deletion")
    return frozenset(SessionID(str(row[0])) for row in rows)


async def list_output_paths(
    tx: Transaction, session_id: SessionID, *, limit: int
) -> tuple[str, ...]:
    """Paths of complete tool outputs that the next `limit` events name."""
    rows = await tx.fetch(
        "SELECT seq, type, data FROM event WHERE session_id = :id ORDER BY seq LIMIT :limit",
        {"id": session_id, "limit": limit},
    )
    found: list[str] = []
    for seq, stored, data in rows:
        if stored in _WITH_PATHS and isinstance(seq, int):
            event = row_checks.decode_event(stored, data, session_id, seq=seq)
            if isinstance(event, ToolSucceeded) and event.output_paths:
                found += event.output_paths
            elif isinstance(event, ToolPruned) and event.path:
                found.append(event.path)
    return tuple(found)


async def remove_batch(tx: Transaction, session_id: SessionID, *, limit: int) -> bool:
    """Remove the next rows of a Session; returns whether more remain."""
    parameters = {"id": session_id, "limit": limit}
    if await tx.execute(_MESSAGES, parameters) == limit:
        return True
    if await tx.execute(_EVENTS, parameters | {"last": _LAST}) == limit:
        return True
    # A run that did not know of the deletion may have written rows since.
    for table in ("event", "session_deletion", *_FEW):
        await tx.execute(f"DELETE FROM {table} WHERE session_id = :id", {"id": session_id})
    return False


async def remove_all(tx: Transaction, session_id: SessionID) -> None:
    """Remove everything of a Session at once, its `deleted` event included."""
    await begin(tx, session_id)
    for table in ("event", "session_message", "session_deletion"):
        await tx.execute(f"DELETE FROM {table} WHERE session_id = :id", {"id": session_id})
