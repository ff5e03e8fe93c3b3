"""Moves a Session to another directory of its project, with or without uncommitted changes.

A move is one event. Its projection ends the Context Epoch, so the destination must have a complete
baseline before a prompt is promoted there. The caller ensures that nothing runs here meanwhile; a
run in another process notices at its next boundary. location.project.git_changes moves the files.

Invariant: changes are applied at the destination, then the event is committed, and only then are
they undone at the source. A crash in between leaves them in at least one place.
"""

import asyncio
import logging
import os
from contextlib import suppress

from msgspec import UNSET

from perdure.location.project import project
from perdure.location.project.git_changes import CapturedChanges, ChangesRefusedError, GitChanges
from perdure.location.project.project import Repository
from perdure.location.registry import LocationRegistry
from perdure.ports import Clock, Transaction
from perdure.runtime.tasks import shielded
from perdure.schema.errors import DomainError, InvalidRequestError, MoveConflictError
from perdure.schema.ids import ProjectID, Seq, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.session.event import Moved
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table

logger = logging.getLogger(__name__)


class SessionMoves:
    def __init__(
        self, store: EventStore, locations: LocationRegistry, changes: GitChanges, clock: Clock
    ) -> None:
        self._store = store
        self._locations = locations
        self._changes = changes
        self._clock = clock

    async def move(
        self, session_id: SessionID, *, destination: LocationRef, changes: bool
    ) -> DomainError | None:
        """Return why it cannot move, if so; then nothing has changed.

        Moving to the current Location is a no-op.
        """
        try:
            await self._move(session_id, destination, changes=changes)
        except DomainError as refused:
            return refused
        return None

    async def _move(
        self, session_id: SessionID, destination: LocationRef, *, changes: bool
    ) -> None:
        session = await self._store.load_session(session_id)
        there = await self._info(destination)
        if there.ref == session.location:
            return
        if there.project.id not in await self._projects(session):
            raise _refused(f"{there.directory} belongs to another project than the Session")
        if session.revert is not UNSET:
            raise _staged(there)
        trees = await asyncio.to_thread(_find_work_trees, session, there) if changes else None
        if trees is None:
            await self._append(session, there)
            return
        source, target = trees
        try:
            async with self._changes.capture(source) as captured:
                await shielded(self._move_changes(captured, target, session, there))
        except ChangesRefusedError as error:
            raise MoveConflictError(
                there.directory, f"Changes cannot be moved to {there.directory}: {error}"
            ) from error

    async def _move_changes(
        self, captured: CapturedChanges, target: Repository, session: SessionInfo, to: LocationInfo
    ) -> None:
        applied = await captured.apply(target)
        try:
            await self._append(session, to)
        except BaseException:
            if applied and not await captured.undo_apply(target):
                logger.warning("changes of %s were left in %s too", session.id, target.worktree)
            raise
        if not await captured.discard():
            logger.warning(
                "changes of %s stay in %s too: the files were changed again meanwhile",
                session.id,
                captured.source.worktree,
            )

    async def _append(self, session: SessionInfo, to: LocationInfo) -> None:
        event = Moved(
            timestamp=self._clock.now_millis(),
            session_id=session.id,
            location=to.ref,
            subdirectory=to.subpath or UNSET,
        )

        async def check(tx: Transaction, seq: Seq) -> None:
            # In the transaction of the append: another process may have staged a revert.
            if await session_table.is_reverting(tx, session.id):
                raise _staged(to)

        await self._store.append(session.id, [event], location=session.location, within=check)

    async def _info(self, destination: LocationRef) -> LocationInfo:
        try:
            return await self._locations.info(destination)
        except InvalidRequestError as error:
            raise _refused(error.message) from error

    async def _projects(self, session: SessionInfo) -> set[ProjectID]:
        """Return the project it was created in, and the project of its directory now.

        They differ when the repository had no commit or no remote when it was created.
        """
        found = {session.project_id}
        with suppress(InvalidRequestError):
            here = await self._locations.info(session.location)
            found.add(here.project.id)
        return found


def _find_work_trees(
    session: SessionInfo, there: LocationInfo
) -> tuple[Repository, Repository] | None:
    """Return the source and the target of the changes; None if both are the same work tree."""
    directory = session.location.directory
    # Searching upwards from a directory that is gone could find another repository.
    source = _find_repository(directory) if os.path.isdir(directory) else None
    target = _find_repository(there.directory)
    if source is None or target is None:
        at = directory if source is None else there.directory
        raise _refused(f"{at} is not in a git work tree, so no changes can be moved", "moveChanges")
    return None if source.worktree == target.worktree else (source, target)


def _find_repository(directory: str) -> Repository | None:
    return project.find_repository(os.path.realpath(directory))


def _staged(to: LocationInfo) -> MoveConflictError:
    return MoveConflictError(
        to.directory, "A revert is staged; commit or clear it before the Session moves"
    )


def _refused(message: str, field: str = "destination") -> InvalidRequestError:
    return InvalidRequestError(message, field=field)
