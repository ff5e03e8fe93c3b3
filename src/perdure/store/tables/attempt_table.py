"""The request that a run owes, one row for each Session: operational state, and no history.

A row is written with the boundary that prepares a request, changed before its first byte is sent,
and removed with the facts that settle its step. It names no process: whose it is, and whether that
one lives, is the lease's to tell.

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
    """A run is taken up. One that owes something already goes on owing it."""
    await tx.execute(
        "INSERT OR IGNORE INTO session_attempt (session_id, state, step) VALUES (:id, 'begun', 1)",
        {"id": session_id},
    )


async def put(tx: Transaction, session_id: SessionID, state: AttemptState, *, step: int) -> None:
    """How often processes died in it is kept: only a settled step shows that it does not matter."""
    await tx.execute(
        "INSERT INTO session_attempt (session_id, state, step) VALUES (:id, :state, :step)"
        " ON CONFLICT (session_id) DO UPDATE SET"
        " state = excluded.state, step = excluded.step, waits = NULL, abandoned = 0",
        {"id": session_id, "state": state, "step": step},
    )


async def settle(tx: Transaction, session_id: SessionID, *, continues: bool) -> None:
    """The step is settled. When the model waits for its tools, the next request is owed."""
    if not continues:
        await clear(tx, session_id)
        return
    await tx.execute(
        "UPDATE session_attempt SET state = 'settled', step = step + 1, deaths = 0"
        " WHERE session_id = :id",
        {"id": session_id},
    )


async def died(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute(
        "UPDATE session_attempt SET deaths = deaths + 1 WHERE session_id = :id AND waits IS NULL",
        {"id": session_id},
    )


async def wait(tx: Transaction, session_id: SessionID, reason: WaitReason) -> None:
    await tx.execute(
        "UPDATE session_attempt SET waits = :reason WHERE session_id = :id",
        {"id": session_id, "reason": reason},
    )


async def abandon(tx: Transaction, session_id: SessionID, *, left_behind: bool) -> None:
    """Somebody said something new. A run that is under way simply hears it."""
    await tx.execute(
        "UPDATE session_attempt SET abandoned = 1"
        " WHERE session_id = :id AND (waits IS NOT NULL OR :left_behind)",
        {"id": session_id, "left_behind": int(left_behind)},
    )


async def decide(tx: Transaction, session_id: SessionID, *, retry: bool) -> None:
    """A person's word about what waits for it. To retry is to begin anew."""
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
    """Unless it came to owe something."""
    await tx.execute(
        "DELETE FROM session_attempt WHERE session_id = :id AND state = 'begun' AND waits IS NULL",
        {"id": session_id},
    )


async def every(tx: Transaction) -> list[SessionID]:
    """Sessions whose runs owe something, wherever and whether they run."""
    rows = await tx.fetch("SELECT session_id FROM session_attempt")
    return [SessionID(str(row[0])) for row in rows]


async def is_running(tx: Transaction, session_id: SessionID) -> bool:
    """Whether a run is under way, or was when its process died."""
    rows = await tx.fetch(
        "SELECT 1 FROM session_attempt WHERE session_id = :id AND waits IS NULL",
        {"id": session_id},
    )
    return bool(rows)
