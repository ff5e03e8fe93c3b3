"""Reads from the store how a child Session ended its task.

Called only for a child that is idle; runtime.background.subagents knows whether it is.
"""

from typing import Final

from perdure.core.session import subagent
from perdure.core.session.subagent import Report
from perdure.ports import Transaction
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.message import AssistantMessage
from perdure.store.tables import attempt_table, inbox_table, message_table, session_table
from perdure.store.tables.task_table import ChildTask

_LATEST: Final = Seq(2**62)
_GONE: Final = "It was deleted before it had come to its end."
_TAKEN_BACK: Final = "What it was asked for was taken back before it had come to its end."


async def load_report(tx: Transaction, task: ChildTask) -> Report | None:
    """Return the report of an idle child; None if it has not begun or still owes an answer."""
    child_id = task.child_id
    if await session_table.load_json(tx, child_id) is None:
        return Report(state="failed", text=_GONE)
    mark = await attempt_table.get(tx, child_id)
    if mark is not None and mark.state != "owed":
        return None
    cost = await _sum_cost(tx, child_id)
    prompt = await message_table.get(tx, child_id, task.message_id)
    if prompt is None:
        if await inbox_table.is_waiting(tx, task.message_id):
            return None
        return Report(state="failed", text=_TAKEN_BACK, cost=cost)
    row = await message_table.latest_of_type(tx, child_id, "assistant", before=_LATEST)
    answer = None if row is None or row.seq < prompt.seq else row.message()
    last = answer if isinstance(answer, AssistantMessage) else None
    steps = await message_table.count_steps(tx, child_id, after=prompt.seq)
    return subagent.build_report(last, steps=steps, cost=cost)


async def _sum_cost(tx: Transaction, child_id: SessionID) -> float:
    """Return the cost of the child and all below it so far."""
    family = [child_id, *await session_table.descendants(tx, child_id)]
    spent = [await session_table.load(tx, one) for one in family]
    return sum(session.cost for session in spent if session is not None)
