"""Reads a Session at one sequence: its record, newest messages, pending prompts and the sequence.

Read in one transaction, so that a client that follows the durable stream after `seq` gets every
later event once.
"""

from perdure.ports import Database, Transaction
from perdure.runtime.session import inbox as inbox_changes
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.query import MessageRow
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.value import Value
from perdure.store.log.event_store import latest_seq
from perdure.store.tables import message_table, session_table


class SnapshotRows(Value, kw_only=True):
    session: bytes
    messages: tuple[MessageRow, ...]
    """The newest messages, oldest first."""
    has_previous: bool
    inbox: tuple[AdmittedPrompt, ...]
    seq: Seq


class SessionSnapshots:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, session_id: SessionID, *, limit: int) -> SnapshotRows:
        async def job(tx: Transaction) -> SnapshotRows:
            session = await session_table.load_json(tx, session_id)
            if session is None:
                raise SessionNotFoundError(session_id)
            rows = await message_table.page(
                tx, session_id, newest_first=True, limit=limit + 1, anchor=None
            )
            newest = reversed(rows[:limit])
            return SnapshotRows(
                session=session,
                messages=tuple(MessageRow(data=r.data, id=r.id, seq=r.seq) for r in newest),
                has_previous=len(rows) > limit,
                inbox=await inbox_changes.load_pending(tx, session_id),
                seq=await latest_seq(tx, session_id),
            )

        return await self._database.read(job)
