"""Interrupt requests between processes; the process that holds the Session's lease serves them."""

from perdure.ports import Transaction
from perdure.schema.ids import SessionID


async def request(tx: Transaction, session_id: SessionID) -> None:
    # Replaced, not kept: the lease holder is notified by the change of the database.
    await tx.execute(
        "INSERT OR REPLACE INTO session_interrupt (session_id) VALUES (:id)", {"id": session_id}
    )


async def list_requested(tx: Transaction) -> list[SessionID]:
    rows = await tx.fetch("SELECT session_id FROM session_interrupt")
    return [SessionID(str(row[0])) for row in rows]


async def is_requested(tx: Transaction, session_id: SessionID) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM session_interrupt WHERE session_id = :id", {"id": session_id}
    )
    return bool(rows)


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_interrupt WHERE session_id = :id", {"id": session_id})
