"""Deletes a Session and all below it: first one event, then every row and file.

A run is interrupted, in whichever process it is, and background jobs are ended. The event makes the
Session unfindable and its log final; the rows are removed in small transactions, and before them
the files of tool output that they name. A process that dies in between leaves an entry in
`session_deletion`, and the next start continues from there.

Invariant: nothing of a deleted Session can be read once `delete` has returned. Its words are in no
page of the database, and not in the log, unless another process kept that from being emptied, and
contents of files that only its changes name are removed.
"""

import logging
from collections.abc import Collection
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
from perdure.store.tables import (
    deletion_table,
    file_change_table,
    revert_table,
    session_table,
)

logger = logging.getLogger(__name__)


class DeletionEngine(Protocol):
    """What a deletion needs of the engine, which is loaded only when there is such work."""

    async def discard_output(self, path: str) -> None:
        """Remove a file of tool output."""
        ...

    async def discard_contents(self, digests: Collection[str]) -> None:
        """Remove contents of files that only a deleted Session needed."""
        ...

    async def forget_servers(self, session_id: SessionID) -> None:
        """End the MCP servers of a Session, and remove what is stored of them."""
        ...

    async def end_jobs(self, session_id: SessionID) -> None:
        """End the background jobs of a Session."""
        ...


class SessionDeletions:
    def __init__(
        self,
        store: EventStore,
        tails: EventFollowers,
        coordinator: RunCoordinator,
        activity: SessionActivity,
        *,
        clock: Clock,
        engine: DeletionEngine,
    ) -> None:
        self._store = store
        self._tails = tails
        self._coordinator = coordinator
        self._activity = activity
        self._clock = clock
        self._engine = engine
        self._leaving: set[SessionID] = set()
        """Being deleted in this process: a second request for the same Session waits for it."""

    async def delete(self, session_id: SessionID) -> None:
        """Return when nothing of it is left. Raises SessionNotFoundError if it does not exist."""
        await self._store.load_session(session_id)
        contents: set[str] = set()
        for one in await self._store.database.read(lambda tx: _load_family(tx, session_id)):
            if one in self._leaving:
                await self._coordinator.wait_until_idle(one)
                continue
            self._leaving.add(one)
            try:
                # A deletion that dies after this leaves them to the next sweep.
                contents |= await self._store.database.read(
                    lambda tx, one=one: _list_contents(tx, one)
                )
                await self._delete(one)
            finally:
                self._leaving.discard(one)
        await self._empty_log()
        await self._engine.discard_contents(contents)

    async def finish(self) -> None:
        """Finish the deletions that dead processes began."""
        unfinished = sorted(await self._store.database.read(deletion_table.list_sessions))
        for session_id in unfinished:
            await self._purge(session_id)
        if unfinished:
            await self._empty_log()

    async def _empty_log(self) -> None:
        if not await self._store.database.empty_log():
            logger.warning(
                "the log of the database is in use by another process and may still hold words of"
                " deleted Sessions until it is reused"
            )

    async def _delete(self, session_id: SessionID) -> None:
        while session_id in self._coordinator.active:
            await self._coordinator.interrupt(session_id)
        # A run in another process would continue a deleted Session, and its requests cost money.
        await self._activity.interrupt(session_id)
        try:
            await self._coordinator.run_exclusively(session_id, self._remove)
        except DrainInterruptedError as error:
            # A deletion that has begun is not interrupted: if the Session exists, it had not begun.
            found = await self._store.database.read(lambda tx: session_table.load(tx, session_id))
            if found is not None:
                raise ServiceUnavailableError(
                    "The deletion was interrupted before it began", service="session.delete"
                ) from error

    async def _remove(self, session_id: SessionID) -> None:
        # Before the rows that name the jobs are removed.
        await self._engine.end_jobs(session_id)
        event = Deleted(timestamp=self._clock.now_millis(), session_id=session_id)
        # Another process may be deleting it too; both remove rows until none is left.
        with suppress(SessionNotFoundError):
            await self._store.append(session_id, [event], location=None)
        await shielded(self._purge(session_id))

    async def _purge(self, session_id: SessionID) -> None:
        await self._engine.forget_servers(session_id)
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
        """Remove files before the rows that name them, so that a crash in between loses none."""
        try:
            paths = await self._store.database.read(
                lambda tx: deletion_table.list_output_paths(
                    tx, session_id, limit=limits.DELETION_ROWS_MAX
                )
            )
        except DamagedRowError as error:
            # Rows that cannot be read can be removed; their files are swept when they are too old.
            logger.warning("deleting rows that cannot be read: %s", error.message)
            return
        for path in paths:
            await self._engine.discard_output(path)


async def _list_contents(tx: Transaction, session_id: SessionID) -> set[str]:
    """Digests of the contents of files that the rows of a Session name."""
    changed = await file_change_table.list_digests_of(tx, session_id)
    return (changed | await revert_table.list_digests_of(tx, session_id)) - {""}


async def _load_family(tx: Transaction, session_id: SessionID) -> list[SessionID]:
    """Return the Session and all below it, children before their parents."""
    found = [session_id]
    for one in found:
        found += [child for child in await session_table.children(tx, one) if child not in found]
    return found[::-1]
