"""Wake requests between processes; the process that holds the Session's lease drains it."""

from collections.abc import Callable

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.processes.lease_table import RELEASED


async def request(tx: Transaction, session_id: SessionID) -> None:
    # Replaced, not kept: the lease holder is notified by the change of the database, and a request
    # that a dead process did not serve may still be there.
    await tx.execute(
        "INSERT OR REPLACE INTO session_wake (session_id) VALUES (:id)", {"id": session_id}
    )


async def list_for_process(
    tx: Transaction, *, process: str, alive: Callable[[str], bool]
) -> list[SessionID]:
    """Requested Sessions whose lease is free, held by `process`, or held by a dead process."""
    rows = await tx.fetch(
        "SELECT session_wake.session_id, process FROM session_wake"
        " LEFT JOIN session_lease ON session_lease.session_id = session_wake.session_id"
    )
    return [
        SessionID(str(session_id))
        for session_id, holder in rows
        if holder in (None, RELEASED, process) or not alive(str(holder))
    ]


async def list_requested(tx: Transaction) -> list[SessionID]:
    rows = await tx.fetch("SELECT session_id FROM session_wake")
    return [SessionID(str(row[0])) for row in rows]


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_wake WHERE session_id = :id", {"id": session_id})


async def is_requested(tx: Transaction, session_id: SessionID) -> bool:
    rows = await tx.fetch("SELECT 1 FROM session_wake WHERE session_id = :id", {"id": session_id})
    return bool(rows)
