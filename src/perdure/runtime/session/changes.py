"""Renames, archives and resumes a Session.

Each change is one event. A title that the user chose is never replaced by a generated one; an
archived Session is listed as archived and otherwise works as before. Nothing here waits for a run.
"""

from perdure.core import limits
from perdure.core.session import title
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.run_request import request_run
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Archived, Renamed, Unarchived
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import EventStore


class SessionChanges:
    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def rename(self, session_id: SessionID, asked: str) -> SessionInfo:
        """Set the title: one line, without control characters. Return the changed Session."""
        chosen = title.clean_title(asked)
        if not chosen or len(chosen) > limits.TITLE_CHOSEN_CHARS_MAX:
            raise InvalidRequestError(
                f"A title has 1 to {limits.TITLE_CHOSEN_CHARS_MAX} characters that can be seen",
                kind="Payload",
                field="title",
            )
        session = await self._store.load_session(session_id)
        if session.title != chosen:
            now = self._clock.now_millis()
            event = Renamed(timestamp=now, session_id=session_id, title=chosen)
            await self._store.append(session_id, [event], location=session.location)
        return await self._store.load_session(session_id)

    async def archive(self, session_id: SessionID) -> None:
        """Archive the Session. Archiving it again keeps the first time."""
        session = await self._store.load_session(session_id)
        if not session.time.archived:
            event = Archived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def unarchive(self, session_id: SessionID) -> None:
        session = await self._store.load_session(session_id)
        if session.time.archived:
            event = Unarchived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def resume(self, session_id: SessionID) -> None:
        """Run pending prompts, here or in the process that holds the lease. Never waits for it."""
        await self._store.load_session(session_id)

        async def ask(tx: Transaction) -> None:
            await request_run(tx, self._store.leases, session_id)

        await self._store.database.write(ask)
        self._coordinator.wake(session_id)
