"""Tasks of child Sessions: which call asked for them, and whether it got the result.

Operational state. A row is put in the transaction that admits the child's prompt. It is `waiting`
until the child is idle, `ended` until the waiting call gets the result, and then `delivered`, in
the transaction that informs the parent, or `abandoned` when the parent no longer wants it.

Invariant: the result of a task is delivered to its parent at most once, however many processes die.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Final, Literal

from msgspec import UNSET

from perdure.ports import Row, Transaction
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.processes.lease_table import RELEASED
from perdure.store.tables import session_table

TaskState = Literal["waiting", "ended", "delivered", "abandoned"]

NO_PROCESS: Final = ""
"""Stored in place of a process: no call waits; the result is delivered as a notice."""
_OPEN: Final = "state IN ('waiting', 'ended')"
_SELECT: Final = "SELECT message_id, session_id, parent_id, call_id, agent, process FROM child_task"
_RUNNING: Final = f"""
    WITH RECURSIVE down (id) AS (
        SELECT id FROM session WHERE parent_id = :root
        UNION SELECT below.id FROM session AS below JOIN down ON below.parent_id = down.id
    )
    SELECT count(DISTINCT session_id) FROM child_task INDEXED BY child_task_open
    WHERE {_OPEN} AND state = 'waiting' AND session_id IN (SELECT id FROM down)
"""
_UNDELIVERED: Final = f"""
    SELECT t.session_id, t.process, l.process
    FROM child_task AS t INDEXED BY child_task_open
    LEFT JOIN session_lease AS l ON l.session_id = t.session_id
    WHERE {_OPEN}
"""


class ChildTask(Value, kw_only=True):
    message_id: MessageID
    """The child's prompt. Other ids of the task are derived from it."""
    child_id: SessionID
    parent_id: SessionID
    call_id: ToolCallID
    agent: str
    """The agent of the calling turn: its rules bound what the child may do."""
    process: str = NO_PROCESS
    """The process in which the call waits."""


async def put(tx: Transaction, task: ChildTask) -> None:
    await tx.execute(
        "INSERT INTO child_task"
        " (message_id, session_id, parent_id, call_id, agent, process, state)"
        " VALUES (:message_id, :child_id, :parent_id, :call_id, :agent, :process, 'waiting')",
        {
            "message_id": task.message_id,
            "child_id": task.child_id,
            "parent_id": task.parent_id,
            "call_id": task.call_id,
            "agent": task.agent,
            "process": task.process,
        },
    )


async def set_state(tx: Transaction, message_id: MessageID, state: TaskState) -> None:
    await tx.execute(
        "UPDATE child_task SET state = :state WHERE message_id = :id",
        {"id": message_id, "state": state},
    )


async def detach(tx: Transaction, message_id: MessageID) -> None:
    """Record that no call waits any more; the result is then delivered as a notice."""
    await tx.execute(
        "UPDATE child_task SET process = :process WHERE message_id = :id",
        {"id": message_id, "process": NO_PROCESS},
    )


async def abandon(tx: Transaction, child_id: SessionID) -> None:
    """Give up the open tasks of a Session: their results will not be delivered."""
    await tx.execute(
        f"UPDATE child_task SET state = 'abandoned' WHERE session_id = :id AND {_OPEN}",
        {"id": child_id},
    )


async def list_open(tx: Transaction, child_id: SessionID) -> list[ChildTask]:
    """Tasks of this Session whose results are not delivered, oldest first."""
    rows = await tx.fetch(
        f"{_SELECT} INDEXED BY child_task_open WHERE session_id = :id AND {_OPEN} ORDER BY rowid",
        {"id": child_id},
    )
    return [_task(row) for row in rows]


async def count_running_below(tx: Transaction, root_id: SessionID) -> int:
    """Count the Sessions below the root that work on a task."""
    counted = (await tx.fetch(_RUNNING, {"root": root_id}))[0][0]
    assert isinstance(counted, int)
    return counted


async def list_undelivered(
    tx: Transaction, *, process: str, alive: Callable[[str], bool]
) -> list[SessionID]:
    """Children whose result no living process waits for, and which no other process runs."""
    rows = await tx.fetch(_UNDELIVERED)
    return [
        SessionID(str(child))
        for child, waiter, holder in rows
        if (waiter == NO_PROCESS or not alive(str(waiter)))
        and (holder in (None, RELEASED, process) or not alive(str(holder)))
    ]


async def agents_above(tx: Transaction, session: SessionInfo) -> tuple[str, ...]:
    """The agents whose rules bound a Session: its caller's, then that caller's, up to the root."""
    if session.parent_id is UNSET:
        return ()
    lineage = [session.id, *await session_table.ancestors(tx, session.id)]
    found = [await _caller(tx, child, parent) for child, parent in pairwise(lineage)]
    return tuple(agent for agent in found if agent is not None)


async def _caller(tx: Transaction, child_id: SessionID, parent_id: SessionID) -> str | None:
    rows = await tx.fetch(
        "SELECT agent FROM child_task WHERE session_id = :id ORDER BY rowid DESC LIMIT 1",
        {"id": child_id},
    )
    if rows:
        return str(rows[0][0])
    # Not created by a call here; an imported Session, for example.
    parent = await session_table.require(tx, parent_id)
    return None if parent.agent is UNSET else parent.agent


def _task(row: Row) -> ChildTask:
    message_id, child_id, parent_id, call_id, agent, process = row
    return ChildTask(
        message_id=MessageID(str(message_id)),
        child_id=SessionID(str(child_id)),
        parent_id=SessionID(str(parent_id)),
        call_id=ToolCallID(str(call_id)),
        agent=str(agent),
        process=str(process),
    )
