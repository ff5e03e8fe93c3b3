"""Reads what a compaction is made of: the conversation, its size, and the system text."""

from perdure.core import limits
from perdure.core.compaction import plan as compaction
from perdure.core.compaction.plan import Material
from perdure.core.session import recovery
from perdure.core.session.history import Cut
from perdure.location.models.catalog import ResolvedModel
from perdure.ports import Transaction
from perdure.runtime.turn import ownership
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.message import UserMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log import event_store
from perdure.store.tables import epoch_table, message_table, session_table, todo_table


class FoundHistory(Value, kw_only=True):
    """The conversation of a Session as a compaction begins with it."""

    material: Material
    baseline: str
    read_at: Seq
    """The end of the log when all this was looked at."""


async def load(tx: Transaction, session_id: SessionID) -> tuple[SessionInfo, bool]:
    """The Session, and whether a step of it is open."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    is_open = newest is not None and recovery.find_cut_step([newest.message()]) is not None
    return await session_table.require(tx, session_id), is_open


async def look(tx: Transaction, session_id: SessionID, model: ResolvedModel) -> FoundHistory:
    epoch = await epoch_table.get(tx, session_id)
    cut = Cut(
        await message_table.latest_compaction(tx, session_id),
        None if epoch is None else epoch.baseline_seq,
    )
    rows = await message_table.list_after(tx, session_id, await ownership.cut_floor(tx, session_id))
    history = tuple(row.message() for row in rows if cut.shows(seq=row.seq, type=row.type))
    said = await message_table.newest_prompts(tx, session_id, limit=limits.DIRECTIVES_READ_MAX)
    prompts = (row.message() for row in said)
    return FoundHistory(
        material=Material(
            history=history,
            tokens=compaction.measure(history, model.ref, model.media),
            prompts=tuple(prompt for prompt in prompts if isinstance(prompt, UserMessage)),
            todos=await todo_table.load_todos(tx, session_id),
        ),
        baseline="" if epoch is None else epoch.baseline,
        read_at=await event_store.latest_seq(tx, session_id),
    )
