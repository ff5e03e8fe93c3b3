"""Deleting a Session, with those that it started: first one event, then every row and file.

What runs, in whichever process, is interrupted, and background jobs are ended. The event makes the
Session unfindable and its log final; the rows go in small transactions, and before them the files
of tool output that they name. A process that dies in between leaves an entry in `session_deletion`,
and the next start goes on from there.

Invariant: nothing of a deleted Session can be read once `delete` has returned.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from perdure.core import limits
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import DrainInterruptedError, RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.tasks import shielded
from perdure.schema.errors import DamagedRowError, ServiceUnavailableError, SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Deleted
from perdure.store.log.event_store import EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.tables import deletion_table, session_table

logger = logging.getLogger(__name__)


class Outputs(Protocol):
    async def discard(self, path: str) -> None:
        """Remove a file of tool output."""
        ...


class SessionDeletions:
    def __init__(
        self,
        store: EventStore,
        tails: EventFollowers,
        coordinator: RunCoordinator,
        clock: Clock,
        *,
        outputs: Outputs,
        end_jobs: Callable[[SessionID], Awaitable[None]],
    ) -> None:
        self._store = store
        self._tails = tails
        self._coordinator = coordinator
        self._runs = SessionActivity(store, coordinator, clock)
        self._clock = clock
        self._outputs = outputs
        self._end_jobs = end_jobs
        self._leaving: set[SessionID] = set()
        """What is being deleted here: whoever asks for the same waits for it."""

    async def delete(self, session_id: SessionID) -> None:
        """Gone for good when this returns. Raises SessionNotFoundError when it was gone before."""
        await self._store.database.read(lambda tx: session_table.require(tx, session_id))
        for one in await self._store.database.read(lambda tx: _family(tx, session_id)):
            if one in self._leaving:
                await self._coordinator.idle(one)
                continue
            self._leaving.add(one)
            try:
                await self._delete(one)
            finally:
                self._leaving.discard(one)

    async def finish(self) -> None:
        """Go on with what dead processes began."""
        for session_id in sorted(await self._store.database.read(deletion_table.list_sessions)):
            await self._purge(session_id)

    async def _delete(self, session_id: SessionID) -> None:
        while session_id in self._coordinator.active:
            await self._coordinator.interrupt(session_id)
        # A run of another process would go on with a Session that is gone, and pay for it.
        await self._runs.interrupt(session_id)
        try:
            await self._coordinator.exclusive(session_id, self._remove)
        except DrainInterruptedError as error:
            # Once begun it is not cut off; what is still there was not begun.
            found = await self._store.database.read(lambda tx: session_table.load(tx, session_id))
            if found is not None:
                raise ServiceUnavailableError(
                    "The deletion was interrupted before it began", service="session.delete"
                ) from error

    async def _remove(self, session_id: SessionID) -> None:
        # Before nobody knows any more that they are there.
        await self._end_jobs(session_id)
        event = Deleted(timestamp=self._clock.now_millis(), session_id=session_id)
        # Another process may be deleting it too; together they are done no later.
        with suppress(SessionNotFoundError):
            await self._store.append(session_id, [event], location=None)
        await shielded(self._purge(session_id))

    async def _purge(self, session_id: SessionID) -> None:
        more = True
        while more:
            await self._discard_outputs(session_id)
            more = await self._store.database.write(
                lambda tx: deletion_table.remove_batch(
                    tx, session_id, limit=limits.DELETION_ROWS_MAX
                )
            )
        self._tails.wake(session_id)

    async def _discard_outputs(self, session_id: SessionID) -> None:
        """Before the rows that name them, so that a death in between forgets none."""
        try:
            paths = await self._store.database.read(
                lambda tx: deletion_table.list_output_paths(
                    tx, session_id, limit=limits.DELETION_ROWS_MAX
                )
            )
        except DamagedRowError as error:
            # What cannot be read can still be removed; its files go when they are too old.
            logger.warning("deleted without looking: %s", error.message)
            return
        for path in paths:
            await self._outputs.discard(path)


async def _family(tx: Transaction, session_id: SessionID) -> list[SessionID]:
    """Children before their parents, so that none is left without one."""
    found = [session_id]
    for one in found:
        found += [child for child in await session_table.children(tx, one) if child not in found]
    return found[::-1]
