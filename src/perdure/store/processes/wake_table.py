"""Runs asked of another process: whoever holds the Session's lease finds them and drains."""

from collections.abc import Callable

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.processes.lease_table import RELEASED


async def request(tx: Transaction, session_id: SessionID) -> None:
    # Replaced, not kept: whoever shall answer looks when something has changed, and a request that
    # a dead process never answered may still be there.
    await tx.execute(
        "INSERT OR REPLACE INTO session_wake (session_id) VALUES (:id)", {"id": session_id}
    )


async def answerable(
    tx: Transaction, *, process: str, alive: Callable[[str], bool]
) -> list[SessionID]:
    """Requests whose Session is ours, or whose process is gone."""
    rows = await tx.fetch(
        "SELECT session_wake.session_id, process FROM session_wake"
        " LEFT JOIN session_lease ON session_lease.session_id = session_wake.session_id"
    )
    return [
        SessionID(str(session_id))
        for session_id, holder in rows
        if holder in (None, RELEASED, process) or not alive(str(holder))
    ]


async def answered(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_wake WHERE session_id = :id", {"id": session_id})


async def is_asked(tx: Transaction, session_id: SessionID) -> bool:
    rows = await tx.fetch("SELECT 1 FROM session_wake WHERE session_id = :id", {"id": session_id})
    return bool(rows)
