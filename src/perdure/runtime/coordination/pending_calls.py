"""Whether the calls of a Session's newest step wait for a person, as the store has it."""

from perdure.core.session import recovery
from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.tables import message_table, pending_table


async def asks_person(tx: Transaction, session_id: SessionID) -> bool:
    """Whether calls of the newest step have yet to go on with the answer of a person."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    if newest is None or recovery.find_cut_step([newest.message()]) is None:
        return False
    return bool(await pending_table.list_waiting_calls(tx, session_id, newest.id))


async def waits_for_person(tx: Transaction, session_id: SessionID) -> bool:
    """Whether every open call of the newest step waits for the answer of a person."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    step = None if newest is None else recovery.find_cut_step([newest.message()])
    if step is None:
        return False
    rows = await pending_table.list_of_step(tx, session_id, step.id)
    waiting = {row.call_id for row in rows if row.answer is None}
    return bool(waiting) and recovery.open_calls(step) <= waiting
