"""Lists the Sessions directly below a Session."""

from perdure.ports import Database, Transaction
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.store.tables import session_table


class SessionChildren:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_children(self, session_id: SessionID) -> tuple[bytes, ...]:
        """Return the JSON of each child, oldest first. Raises SessionNotFoundError."""

        async def job(tx: Transaction) -> tuple[bytes, ...]:
            if await session_table.load_json(tx, session_id) is None:
                raise SessionNotFoundError(session_id)
            found = await session_table.children(tx, session_id)
            made = [await session_table.load_json(tx, child_id) for child_id in found]
            return tuple(data for data in made if data is not None)

        return await self._database.read(job)
