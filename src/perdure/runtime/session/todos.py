"""Reads the todo list of a Session.

A tool call writes it, and it is committed with that call's result (runtime.turn.provider_turn). A
revert restores the list as it was at the boundary message.
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

    async def load_todos(self, session_id: SessionID) -> Todos:
        """Return the current list; empty if none was written. Raises SessionNotFoundError."""

        async def job(tx: Transaction) -> Todos:
            if await session_table.load_json(tx, session_id) is None:
                raise SessionNotFoundError(session_id)
            return await todo_table.load_todos(tx, session_id)

        return await self._store.database.read(job)
