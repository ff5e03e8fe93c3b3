"""Ends of runs asked of another process: whoever holds the Session's lease finds them and obeys."""

from perdure.ports import Transaction
from perdure.schema.ids import SessionID


async def request(tx: Transaction, session_id: SessionID) -> None:
    # Replaced, not kept: whoever shall obey looks when something has changed.
    await tx.execute(
        "INSERT OR REPLACE INTO session_interrupt (session_id) VALUES (:id)", {"id": session_id}
    )


async def asked(tx: Transaction) -> list[SessionID]:
    rows = await tx.fetch("SELECT session_id FROM session_interrupt")
    return [SessionID(str(row[0])) for row in rows]


async def is_asked(tx: Transaction, session_id: SessionID) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM session_interrupt WHERE session_id = :id", {"id": session_id}
    )
    return bool(rows)


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_interrupt WHERE session_id = :id", {"id": session_id})
