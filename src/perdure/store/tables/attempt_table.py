"""The run that a Session is owed, and how far its request has come: operational state.

A row is written with the admission or notice that asks for a run, updated by the boundary that
prepares a request and before its first byte is sent, and removed with the events that settle the
last step, or by an interrupt. It names no process; the lease tells which process runs the Session
and whether it lives.

Invariant: without a row nothing is promoted or sent, whatever waits in the inbox.
"""

from typing import Final, cast

from perdure.core.session.recovery import Attempt, AttemptState
from perdure.ports import Transaction
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.recovery import WaitReason

_INPUT_SINCE: Final = 2
"""Stored as `abandoned`: new input arrived, and the request does not wait for a decision so far."""
_STAYS_OWED: Final = """
    UPDATE session_attempt
    SET state = 'owed', step = 1, deaths = 0, waits = NULL, abandoned = 0
    WHERE session_id = :id
        AND (EXISTS (SELECT 1 FROM session_input INDEXED BY session_input_pending
                WHERE session_id = :id AND promoted_seq IS NULL AND cancelled_seq IS NULL)
            OR EXISTS (SELECT 1 FROM session_notice WHERE session_id = :id))
        AND (woken OR NOT EXISTS (SELECT 1 FROM session_interrupt WHERE session_id = :id))
"""


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
        abandoned=abandoned == 1,
    )


async def owe(tx: Transaction, session_id: SessionID) -> None:
    """A run is asked for: it is owed until it has ended, or an interrupt has taken it back."""
    await tx.execute(
        "INSERT INTO session_attempt (session_id, state, step, woken) VALUES (:id, 'owed', 1,"
        " max(1, (SELECT ifnull(max(seq), 1) FROM event WHERE session_id = :id)))"
        " ON CONFLICT (session_id) DO UPDATE SET woken = excluded.woken",
        {"id": session_id},
    )


async def begin(tx: Transaction, session_id: SessionID) -> None:
    """Mark a run that is owed as begun. An unfinished request of an earlier run is kept."""
    await tx.execute(
        "UPDATE session_attempt SET state = 'begun' WHERE session_id = :id AND state = 'owed'",
        {"id": session_id},
    )


async def take_over(tx: Transaction, session_id: SessionID) -> None:
    """Begin, or go on with an earlier run: input from now on is newer than its request."""
    await tx.execute(
        "UPDATE session_attempt SET abandoned = 0 WHERE session_id = :id AND abandoned = :later",
        {"id": session_id, "later": _INPUT_SINCE},
    )
    await begin(tx, session_id)


async def put(tx: Transaction, session_id: SessionID, state: AttemptState, *, step: int) -> None:
    """Set the state of the request. The count of deaths is kept until a step ends by itself."""
    await tx.execute(
        "INSERT INTO session_attempt (session_id, state, step) VALUES (:id, :state, :step)"
        " ON CONFLICT (session_id) DO UPDATE SET"
        " state = excluded.state, step = excluded.step, waits = NULL, abandoned = 0, woken = 0",
        {"id": session_id, "state": state, "step": step},
    )


async def settle(tx: Transaction, session_id: SessionID, *, ended: bool) -> None:
    """Settle a step whose tool results must be sent: another request follows.

    `ended`: it ended by itself. One that was settled because its process died or stopped, or its
    answer broke off, is no progress, and the deaths are counted on.
    """
    await tx.execute(
        "UPDATE session_attempt SET state = 'settled', step = step + 1,"
        " deaths = CASE WHEN :ended THEN 0 ELSE deaths END WHERE session_id = :id",
        {"id": session_id, "ended": int(ended)},
    )


async def release(tx: Transaction, session_id: SessionID) -> bool:
    """Nothing more is due for the last request. Return whether a run is still owed.

    It is while input waits. After an interrupt only input that asked for a run since then counts.
    """
    owed = await tx.execute(_STAYS_OWED, {"id": session_id})
    if not owed:
        await clear(tx, session_id)
    return owed > 0


async def stop(tx: Transaction, session_id: SessionID, *, upto: Seq) -> None:
    """An interrupt: what was asked for up to that sequence is not owed any more.

    A request that has been prepared keeps its row, for the run that it ends.
    """
    asked = {"id": session_id, "upto": max(1, upto)}
    await tx.execute(
        "DELETE FROM session_attempt WHERE session_id = :id AND state = 'owed' AND woken <= :upto",
        asked,
    )
    await tx.execute(
        "UPDATE session_attempt SET woken = 0, abandoned = 0"
        " WHERE session_id = :id AND woken <= :upto",
        asked,
    )


async def count_death(tx: Transaction, session_id: SessionID) -> None:
    """Count a process that died while the run was in progress."""
    await tx.execute(
        "UPDATE session_attempt SET deaths = deaths + 1"
        " WHERE session_id = :id AND waits IS NULL AND state <> 'owed'",
        {"id": session_id},
    )


async def set_waiting(tx: Transaction, session_id: SessionID, reason: WaitReason) -> bool:
    """Wait for a person's decision. Return whether new input has made it already."""
    await tx.execute(
        "UPDATE session_attempt SET waits = :reason, abandoned = min(abandoned, 1)"
        " WHERE session_id = :id",
        {"id": session_id, "reason": reason},
    )
    found = await get(tx, session_id)
    return found is not None and found.abandoned


async def abandon(tx: Transaction, session_id: SessionID, *, orphaned: bool) -> None:
    """Give up the request because of a new prompt, if it waits or its process died.

    A run in progress just gets the prompt. If it turns out that the run has to wait for a person,
    the prompt has decided.
    """
    await tx.execute(
        "UPDATE session_attempt SET abandoned ="
        " CASE WHEN waits IS NOT NULL OR :orphaned OR abandoned = 1 THEN 1 ELSE :later END"
        " WHERE session_id = :id",
        {"id": session_id, "orphaned": int(orphaned), "later": _INPUT_SINCE},
    )


async def decide(tx: Transaction, session_id: SessionID, *, retry: bool) -> None:
    """Apply a user's decision about a waiting request: retry it from the start, or give it up.

    A run that was given up before it had a request owes nothing more: its input stays, and waits
    for the next run that is asked for.
    """
    again = (
        "waits = NULL, deaths = 0,"
        " state = CASE state WHEN 'dispatched' THEN 'prepared' ELSE state END"
    )
    if not retry:
        await tx.execute(
            "DELETE FROM session_attempt WHERE session_id = :id AND state = 'begun'",
            {"id": session_id},
        )
    await tx.execute(
        f"UPDATE session_attempt SET {again if retry else 'abandoned = 1'} WHERE session_id = :id",
        {"id": session_id},
    )


async def begin_anew(tx: Transaction, session_id: SessionID) -> None:
    """New input has decided about a run that had no request yet: it runs as if for the first time.

    Without this its deaths would not be counted: those of a run that waits are not.
    """
    await tx.execute(
        "UPDATE session_attempt SET waits = NULL, deaths = 0, abandoned = 0"
        " WHERE session_id = :id AND state = 'begun'",
        {"id": session_id},
    )


async def clear(tx: Transaction, session_id: SessionID) -> None:
    await tx.execute("DELETE FROM session_attempt WHERE session_id = :id", {"id": session_id})


async def end_begun(tx: Transaction, session_id: SessionID) -> None:
    """End a run that prepared no request."""
    rows = await tx.fetch(
        "SELECT 1 FROM session_attempt"
        " WHERE session_id = :id AND state = 'begun' AND waits IS NULL",
        {"id": session_id},
    )
    if rows:
        await release(tx, session_id)


async def list_sessions(tx: Transaction) -> list[SessionID]:
    """Sessions that are owed a run, or have one, in any process, living or dead."""
    rows = await tx.fetch("SELECT session_id FROM session_attempt")
    return [SessionID(str(row[0])) for row in rows]


async def list_waiting(tx: Transaction, *, limit: int) -> list[SessionID]:
    """Sessions whose run waits for a decision of a person."""
    rows = await tx.fetch(
        "SELECT session_id FROM session_attempt WHERE waits IS NOT NULL LIMIT :limit",
        {"limit": limit},
    )
    return [SessionID(str(row[0])) for row in rows]


async def is_running(tx: Transaction, session_id: SessionID) -> bool:
    """Whether a run is in progress, or was when its process died."""
    rows = await tx.fetch(
        "SELECT 1 FROM session_attempt"
        " WHERE session_id = :id AND waits IS NULL AND state <> 'owed'",
        {"id": session_id},
    )
    return bool(rows)
