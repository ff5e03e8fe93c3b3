"""Changing what a Session is called and where it is listed, and running what waits in it.

Each change is one event. A title that was chosen stays; an archived Session is listed as such and
is otherwise like any other. Nothing here waits for a run.
"""

from perdure.core import limits
from perdure.core.session import title
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Archived, Renamed, Unarchived
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import EventStore
from perdure.store.processes import wake_table
from perdure.store.tables import session_table


class SessionChanges:
    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def rename(self, session_id: SessionID, asked: str) -> SessionInfo:
        """The Session with its new title: one line, without what a terminal would obey."""
        chosen = title.clean_title(asked)
        if not chosen or len(chosen) > limits.TITLE_CHOSEN_CHARS_MAX:
            raise InvalidRequestError(
                f"A title has 1 to {limits.TITLE_CHOSEN_CHARS_MAX} characters that can be seen",
                kind="Payload",
                field="title",
            )
        session = await self._session(session_id)
        if session.title != chosen:
            now = self._clock.now_millis()
            event = Renamed(timestamp=now, session_id=session_id, title=chosen)
            await self._store.append(session_id, [event], location=session.location)
        return await self._session(session_id)

    async def archive(self, session_id: SessionID) -> None:
        """Once is enough: the time at which it was archived stays."""
        session = await self._session(session_id)
        if not session.time.archived:
            event = Archived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def unarchive(self, session_id: SessionID) -> None:
        session = await self._session(session_id)
        if session.time.archived:
            event = Unarchived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def resume(self, session_id: SessionID) -> None:
        """Run what is pending, here or in the process that has the Session; never waits for it."""
        await self._session(session_id)

        async def ask(tx: Transaction) -> None:
            if await self._store.leases.runs_elsewhere(tx, session_id):
                await wake_table.request(tx, session_id)

        await self._store.database.write(ask)
        self._coordinator.wake(session_id)

    async def _session(self, session_id: SessionID) -> SessionInfo:
        return await self._store.database.read(lambda tx: session_table.require(tx, session_id))
