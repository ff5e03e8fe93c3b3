"""The unfinished request of a run, one row for each Session: operational state without history.

A row is written with the boundary that prepares a request, updated before the first byte is sent,
and removed with the events that settle its step. It names no process; the lease tells which
process runs the Session and whether it lives.

Invariant: a Session that runs past its boundary has a row; one whose run ended has none.
"""

from typing import cast

from perdure.core.session.recovery import Attempt, AttemptState
from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.schema.session.recovery import WaitReason


async def get(tx: Transaction, session_id: SessionID) -> Attempt | None:
    rows = await tx.fetch(
        "SELECT state, step, deaths, waits, abandoned FROM session_attempt WHERE session_id = :id",
        {"id": session_id},
    )
    if not rows:
        return None
    state, step, deaths, waits, abandoned = rows[0]
    assert isinstance(step, int)
    assert isinstance(deaths, int)
    return Attempt(
        state=cast("AttemptState", state),
        step=step,
        deaths=deaths,
        waits=cast("WaitReason | None", waits),
        abandoned=bool(abandoned),
    )


async def begin(tx: Transaction, session_id: SessionID) -> None:
    """Mark a run as begun. An unfinished request of an earlier run is kept."""
    await tx.execute(
        "INSERT OR IGNORE INTO session_attempt (session_id, state, step) VALUES (:id, 'begun', 1)",
        {"id": session_id},
    )


async def put(tx: Transaction, session_id: SessionID, state: AttemptState, *, step: int) -> None:
    """Set the state of the request. The count of deaths is kept until the step is settled."""
    await tx.execute(
        "INSERT INTO session_attempt (session_id, state, step) VALUES (:id, :state, :step)"
        " ON CONFLICT (session_id) DO UPDATE SET"
        " state = excluded.state, step = excluded.step, waits = NULL, abandoned = 0",
        {"id": session_id, "state": state, "step": step},
    )


async def settle(tx: Transaction, session_id: SessionID, *, continues: bool) -> None:
    """Settle the step. With `continues`, tool results must be sent: another request follows."""
    if not continues:
        await clear(tx, session_id)
        return
    await tx.execute(
        "UPDATE session_attempt SET state = 'settled', step = step + 1, deaths = 0"
        " WHERE session_id = :id",
        {"id": session_id},
    )


async def count_death(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute(
        "UPDATE session_attempt SET deaths = deaths + 1 WHERE session_id = :id AND waits IS NULL",
        {"id": session_id},
    )


async def set_waiting(tx: Transaction, session_id: SessionID, reason: WaitReason) -> None:
    await tx.execute(
        "UPDATE session_attempt SET waits = :reason WHERE session_id = :id",
        {"id": session_id, "reason": reason},
    )


async def abandon(tx: Transaction, session_id: SessionID, *, orphaned: bool) -> None:
    """Give up the request because of a new prompt, if it waits or its process died.

    A run in progress just gets the prompt.
    """
    await tx.execute(
        "UPDATE session_attempt SET abandoned = 1"
        " WHERE session_id = :id AND (waits IS NOT NULL OR :orphaned)",
        {"id": session_id, "orphaned": int(orphaned)},
    )


async def decide(tx: Transaction, session_id: SessionID, *, retry: bool) -> None:
    """Apply a user's decision about a waiting request: retry it from the start, or give it up."""
    again = (
        "waits = NULL, deaths = 0,"
        " state = CASE state WHEN 'dispatched' THEN 'prepared' ELSE state END"
    )
    await tx.execute(
        f"UPDATE session_attempt SET {again if retry else 'abandoned = 1'} WHERE session_id = :id",
        {"id": session_id},
    )


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_attempt WHERE session_id = :id", {"id": session_id})


async def clear_begun(tx: Transaction, session_id: SessionID) -> None:
    """Remove the row of a run that prepared no request."""
    await tx.execute(
        "DELETE FROM session_attempt WHERE session_id = :id AND state = 'begun' AND waits IS NULL",
        {"id": session_id},
    )


async def list_sessions(tx: Transaction) -> list[SessionID]:
    """Sessions with an unfinished run, in any process, living or dead."""
    rows = await tx.fetch("SELECT session_id FROM session_attempt")
    return [SessionID(str(row[0])) for row in rows]


async def is_running(tx: Transaction, session_id: SessionID) -> bool:
    """Whether a run is in progress, or was when its process died."""
    rows = await tx.fetch(
        "SELECT 1 FROM session_attempt WHERE session_id = :id AND waits IS NULL",
        {"id": session_id},
    )
    return bool(rows)
