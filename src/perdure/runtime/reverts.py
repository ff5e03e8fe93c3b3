"""Reverting a Session: a boundary message is staged, then cleared or committed.

Staging marks the boundary and hides nothing; committing takes every later message and input away.
Nothing is promoted in between: a person is deciding what stays.
The log keeps it all. No step records what it did to files yet, so files are left as they are and
a RevertState names its message alone. A prompt commits too: see runtime.admissions.

Invariant: nothing is staged, cleared or committed here while the Session runs in this process, and
a commit always takes the Context Epoch with it, so that context is admitted anew.
"""

from collections.abc import Callable

from msgspec import UNSET

from perdure.ports import Clock, Transaction
from perdure.runtime.run_coordinator import RunCoordinator
from perdure.schema.errors import MessageNotFoundError, SessionBusyError, SessionNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import RevertState, SessionInfo
from perdure.schema.session_event import (
    RevertCleared,
    RevertCommitted,
    RevertStaged,
    SessionEvent,
)
from perdure.store import message_table, session_table
from perdure.store.event_store import EventStore, SequenceConflictError, latest_seq


class Reverts:
    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def stage(
        self, session_id: SessionID, message_id: MessageID, *, files: bool = True
    ) -> RevertState:
        """Make a message the last that stays; staging again moves the boundary.

        `files` asks for the files as they were then. There are no snapshots to take them from, so
        both values leave them alone.
        """
        session, _ = await self._look(session_id)
        revert = RevertState(message_id=message_id)
        event = RevertStaged(
            timestamp=self._clock.now_millis(), session_id=session_id, revert=revert
        )

        async def check(tx: Transaction, seq: Seq) -> None:
            # With the append: a commit a moment ago may have taken the message away.
            if await message_table.get(tx, session_id, message_id) is None:
                raise MessageNotFoundError(session_id, message_id)
            self._check_idle(session_id)

        await self._store.append(session_id, [event], location=session.location, within=check)
        return revert

    async def clear(self, session_id: SessionID) -> None:
        """Keep everything after all; nothing to do when nothing is staged."""
        await self._end(
            session_id,
            lambda _: RevertCleared(timestamp=self._clock.now_millis(), session_id=session_id),
        )

    async def commit(self, session_id: SessionID) -> None:
        """Take away what came after the boundary; nothing to do when nothing is staged."""
        await self._end(
            session_id,
            lambda staged: committed(session_id, staged, now=self._clock.now_millis()),
        )

    async def _end(
        self, session_id: SessionID, fact: Callable[[RevertState], SessionEvent]
    ) -> None:
        while True:
            session, seq = await self._look(session_id)
            if session.revert is UNSET:
                return
            event = fact(session.revert)

            async def check(tx: Transaction, _: Seq) -> None:
                self._check_idle(session_id)

            try:
                await self._store.append(
                    session_id, [event], location=session.location, expected=seq, within=check
                )
            except SequenceConflictError:
                # What is staged may be another by now, or gone.
                continue
            # Whatever was pending has waited for this.
            self._coordinator.wake(session_id)
            return

    async def _look(self, session_id: SessionID) -> tuple[SessionInfo, Seq]:
        """The Session, and the sequence at which it is so."""

        async def job(tx: Transaction) -> tuple[SessionInfo | None, Seq]:
            return await session_table.load(tx, session_id), await latest_seq(tx, session_id)

        session, seq = await self._store.database.read(job)
        if session is None:
            raise SessionNotFoundError(session_id)
        return session, seq

    def _check_idle(self, session_id: SessionID) -> None:
        if session_id in self._coordinator.active:
            raise SessionBusyError(session_id)


def committed(session_id: SessionID, revert: RevertState, *, now: int) -> RevertCommitted:
    return RevertCommitted(timestamp=now, session_id=session_id, message_id=revert.message_id)
