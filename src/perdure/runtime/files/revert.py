"""The files of a revert: found out, written down, moved, and taken back when that goes wrong.

What is to be moved is durable before the first file is (store.tables.revert_table). When all are
there, the caller's event says so in the same transaction as the rows; when anything fails before,
every file goes back to where it was. What a dead process left on its way goes back with the next
start. Which file moves where is decided by core.files.revert.

Invariant: outside of `carried_out` every file is where the log says, or somebody else changed it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec import UNSET

from perdure.core import limits
from perdure.core.files import revert
from perdure.core.files import revert as revert_diff
from perdure.core.files.file_state import UNKNOWN, FileState
from perdure.core.files.revert import FileChange, Move, RevertPlan, StagedFile
from perdure.host.files.content_store import ContentLostError
from perdure.host.files.restorable import FoundChangedError
from perdure.ports import Processes, Transaction
from perdure.runtime.files import step_journal
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.runtime.tasks import shielded
from perdure.schema.errors import RevertConflictError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.session import FileConflict, FileDiff, RevertState, SessionInfo
from perdure.store.tables import file_change_table, revert_table
from perdure.store.tables.revert_table import RevertInProgress

logger = logging.getLogger(__name__)


class FileReverts:
    def __init__(self, snapshots: FileSnapshots, processes: Processes) -> None:
        self._database = snapshots.database
        self._store = snapshots.store
        self._processes = processes

    async def plan(self, session_id: SessionID, *, after: Seq | None) -> RevertPlan:
        """How to take back what was done after a sequence; None: how to clear what is staged."""

        async def job(tx: Transaction) -> tuple[list[FileChange], list[StagedFile]]:
            done = (
                [] if after is None else await file_change_table.list_after(tx, session_id, after)
            )
            return done, await revert_table.list_staged(tx, session_id)

        changes, staged = await self._database.read(job)
        now = await asyncio.to_thread(self._found, (*changes, *staged))
        return revert.plan_revert(changes, {item.path: item for item in staged}, now)

    async def shown(
        self, session: SessionInfo, message_id: MessageID, plan: RevertPlan
    ) -> RevertState:
        """The plan as a person is shown it. Raises RevertConflictError when a content is lost."""
        root = step_journal.root_of(session.location.directory)
        try:
            files = await asyncio.to_thread(self._diffs, plan.moves, root)
        except ContentLostError as error:
            raise RevertConflictError(root, str(error)) from error
        conflicts = tuple(
            FileConflict(path=step_journal.shown(item.path, root), reason=item.reason)
            for item in plan.conflicts
        )
        first = UNSET if session.revert is UNSET else session.revert.snapshot
        return RevertState(
            message_id=message_id,
            snapshot=first or await self._snapshot(session.id) or UNSET,
            diff=revert_diff.join_patches(files),
            files=files,
            conflicts=conflicts or UNSET,
        )

    @asynccontextmanager
    async def carried_out(self, session_id: SessionID, plan: RevertPlan) -> AsyncGenerator[None]:
        """All files are moved in this scope. Whatever is raised in it takes them back.

        Raises RevertConflictError when one cannot be moved; all are as before then.
        """
        process = self._processes.me
        await self._database.write(
            lambda tx: revert_table.begin(tx, session_id, plan.moves, process=process)
        )
        try:
            await self._moved([move for move in plan.moves if move.changes])
            yield
        except BaseException:
            # Not by its rows: a prompt may have ended the revert, and them with it.
            begun = [
                RevertInProgress(
                    root=move.root, path=move.path, origin=move.found, next=move.wanted
                )
                for move in plan.moves
            ]
            await shielded(self._take_back(session_id, begun))
            raise

    async def take_back_left(self) -> None:
        """Put back what dead processes left on its way."""
        for session_id, process in await self._database.read(
            revert_table.list_sessions_in_progress
        ):
            if not self._processes.alive(process):
                logger.warning("a revert of %s was cut off: its files are put back", session_id)
                begun = await self._database.read(
                    partial(revert_table.list_in_progress, session_id=session_id)
                )
                await self._take_back(session_id, begun)

    async def _take_back(self, session_id: SessionID, begun: Sequence[RevertInProgress]) -> None:
        """Put back what is on its way, where it still is what it was to become."""
        await asyncio.to_thread(self._put_back, begun)
        await self._database.write(lambda tx: revert_table.abandon(tx, session_id))

    async def _snapshot(self, session_id: SessionID) -> str | None:
        """What names the Session's changes so far."""
        return await self._database.read(
            lambda tx: file_change_table.latest_snapshot(tx, session_id)
        )

    def _diffs(self, moves: Sequence[Move], root: str) -> tuple[FileDiff, ...]:
        return tuple(
            revert_diff.diff_move(
                move,
                step_journal.shown(move.path, root),
                before=self._content(move.base),
                after=self._content(move.wanted),
            )
            for move in moves
            if not move.base.same(move.wanted)
        )

    async def _moved(self, moves: Sequence[Move]) -> None:
        for move in moves:
            try:
                await shielded(asyncio.to_thread(self._store.files.put, move))
            except FoundChangedError as error:
                raise RevertConflictError(move.path, "it is being changed just now") from error
            except OSError as error:
                raise RevertConflictError(move.path, error.strerror or str(error)) from error

    def _found(self, items: Iterable[FileChange | StagedFile]) -> Mapping[str, FileState]:
        """What is there now, each content kept: a cleared revert brings it back."""
        found: dict[str, FileState] = {}
        for item in items:
            if item.path not in found:
                found[item.path] = self._look(item.root, item.path)
        return found

    def _look(self, root: str, path: str) -> FileState:
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        try:
            return self._store.files.read_state(root, path, bytes_max=bytes_max, durable=True)
        except OSError as error:
            logger.warning("%s cannot be looked at: %s", path, error.strerror)
            return UNKNOWN

    def _put_back(self, found: Sequence[RevertInProgress]) -> None:
        for item in found:
            back = Move(
                root=item.root,
                path=item.path,
                base=item.origin,
                found=item.next,
                wanted=item.origin,
            )
            if not back.changes:
                continue
            try:
                self._store.files.put(back)
            except FoundChangedError:
                # Not moved yet, or changed by somebody since: either way it stays.
                continue
            except OSError as error:
                logger.warning("%s cannot be put back: %s", item.path, error.strerror)

    def _content(self, state: FileState) -> bytes | None:
        return self._store.contents.read(state.digest) if state.has_content else None
