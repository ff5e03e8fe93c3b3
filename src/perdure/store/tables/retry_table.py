"""Turns that wait for a retry: operational state, so that a restart continues the wait.

An entry is written in the transaction of its `retried` event and removed just before the request
is sent again. While it exists, no request of the turn is in progress.
"""

from perdure.core.session.retry import Retry
from perdure.ports import Transaction
from perdure.schema.ids import SessionID


async def put(tx: Transaction, session_id: SessionID, retry: Retry) -> None:
    await tx.execute(
        "INSERT OR REPLACE INTO session_retry"
        " (session_id, failed, due, delay, step, message, waited)"
        " VALUES (:id, :failed, :due, :delay, :step, :message, :waited)",
        {
            "id": session_id,
            "failed": retry.failed,
            "due": retry.due,
            "delay": retry.delay,
            "step": retry.step,
            "message": retry.message,
            "waited": retry.waited,
        },
    )


async def get(tx: Transaction, session_id: SessionID) -> Retry | None:
    rows = await tx.fetch(
        "SELECT failed, due, delay, step, message, waited FROM session_retry"
        " WHERE session_id = :id",
        {"id": session_id},
    )
    if not rows:
        return None
    failed, due, delay, step, message, waited = rows[0]
    assert isinstance(failed, int)
    assert isinstance(due, int)
    assert isinstance(delay, int)
    assert isinstance(step, int)
    assert isinstance(waited, int)
    return Retry(
        failed=failed, due=due, delay=delay, step=step, message=str(message), waited=waited
    )


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_retry WHERE session_id = :id", {"id": session_id})


async def list_sessions(tx: Transaction) -> list[SessionID]:
    """Every Session that waits for a retry."""
    rows = await tx.fetch("SELECT session_id FROM session_retry")
    return [SessionID(str(row[0])) for row in rows]
