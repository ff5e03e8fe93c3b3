"""A Session's list of what is to be done, as clients read it.

It is written by a tool call and becomes durable with it: see runtime.turn.provider_turn. A revert
brings the list back that its last message was written under.
"""

from perdure.ports import Transaction
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.todo import Todos
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table, todo_table


class SessionTodos:
    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def of(self, session_id: SessionID) -> Todos:
        """The list as it was last written; empty when it never was."""

        async def job(tx: Transaction) -> Todos:
            if await session_table.load_json(tx, session_id) is None:
                raise SessionNotFoundError(session_id)
            return await todo_table.load_todos(tx, session_id)

        return await self._store.database.read(job)
