"""A Session together with those below it: listed, loaded, and interrupted as one.

Invariant: an interrupted child does not report to its parent, so an interrupted parent stays idle.
"""

from perdure.ports import Database, Transaction
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table, task_table


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


class SessionTree(Value):
    ids: frozenset[SessionID]
    locations: tuple[LocationRef, ...]
    """Where they work, without duplicates."""


async def load_tree(tx: Transaction, session_id: SessionID) -> SessionTree:
    """Raises SessionNotFoundError."""
    ids = (session_id, *await session_table.descendants(tx, session_id))
    found = [await session_table.require(tx, one) for one in ids]
    locations = dict.fromkeys(session.location for session in found)
    return SessionTree(frozenset(session.id for session in found), tuple(locations))


async def interrupt_tree(store: EventStore, runs: SessionActivity, session_id: SessionID) -> None:
    """End what runs, in every process, parents before children; wait until it is settled."""
    await runs.interrupt(session_id)

    async def job(tx: Transaction) -> list[SessionID]:
        below = await session_table.descendants(tx, session_id)
        return [child_id for child_id in below if await _is_busy(tx, runs, child_id)]

    for child_id in await store.database.read(job):
        await store.database.write(lambda tx, child_id=child_id: task_table.abandon(tx, child_id))
        await runs.interrupt(child_id)


async def _is_busy(tx: Transaction, runs: SessionActivity, session_id: SessionID) -> bool:
    return runs.runs_here(session_id) or bool(
        await task_table.list_open(tx, session_id) or await runs.runs_elsewhere(tx, session_id)
    )
