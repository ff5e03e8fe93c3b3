"""Plans and applies the file changes of a revert, and undoes them on failure.

The plan is durable before the first file is written (store.tables.revert_table). When all files are
written, the caller's event is committed together with the rows; when anything fails before, every
file is restored. The next start restores the files of a revert that a dead process left half done.
core.files.revert decides which file gets which content.

Invariant: outside of `apply_plan` every file is as the log says, or another program changed it.
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
        self._snapshots = snapshots
        self._store = snapshots.store
        self._processes = processes

    async def plan(self, session_id: SessionID, *, after: Seq | None) -> RevertPlan:
        """Plan how to undo changes after a sequence; with None, how to clear a staged revert."""

        async def job(tx: Transaction) -> tuple[list[FileChange], list[StagedFile]]:
            done = (
                [] if after is None else await file_change_table.list_after(tx, session_id, after)
            )
            return done, await revert_table.list_staged(tx, session_id)

        changes, staged = await self._database.read(job)
        now = await asyncio.to_thread(self._look_at_all, (*changes, *staged))
        return revert.plan_revert(changes, {item.path: item for item in staged}, now)

    async def describe_plan(
        self, session: SessionInfo, message_id: MessageID, plan: RevertPlan
    ) -> RevertState:
        """Return the plan as clients see it. Raises RevertConflictError if a content is lost."""
        root = step_journal.resolve_root(session.location.directory)
        try:
            files = await asyncio.to_thread(self._diffs, plan.moves, root)
        except ContentLostError as error:
            raise RevertConflictError(root, str(error)) from error
        conflicts = tuple(
            FileConflict(path=step_journal.display_path(item.path, root), reason=item.reason)
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
    async def apply_plan(self, session_id: SessionID, plan: RevertPlan) -> AsyncGenerator[None]:
        """A scope in which all files are written; an error inside of it restores them.

        Raises RevertConflictError when a file cannot be written; all are restored then.
        """
        process = self._processes.me
        await self._database.write(
            lambda tx: revert_table.begin(tx, session_id, plan.moves, process=process)
        )
        try:
            await self._write_all(session_id, [move for move in plan.moves if move.changes])
            yield
        except BaseException:
            # From the plan, not from its rows: a prompt may have committed the revert and removed
            # the rows.
            begun = [
                RevertInProgress(
                    root=move.root, path=move.path, origin=move.found, next=move.wanted
                )
                for move in plan.moves
            ]
            await shielded(self._restore(session_id, begun))
            raise

    async def restore_interrupted(self) -> None:
        """Restore the files of reverts that dead processes left half done."""
        for session_id, process in await self._database.read(
            revert_table.list_sessions_in_progress
        ):
            if not self._processes.alive(process):
                logger.warning("a revert of %s was interrupted: restoring its files", session_id)
                begun = await self._database.read(
                    partial(revert_table.list_in_progress, session_id=session_id)
                )
                await self._restore(session_id, begun)

    async def _restore(self, session_id: SessionID, begun: Sequence[RevertInProgress]) -> None:
        """Restore the files that still have the content that the revert wrote."""
        await asyncio.to_thread(self._restore_files, session_id, begun)
        await self._database.write(lambda tx: revert_table.abandon(tx, session_id))

    async def _snapshot(self, session_id: SessionID) -> str | None:
        """Return the name of the Session's changes so far."""
        return await self._database.read(
            lambda tx: file_change_table.latest_snapshot(tx, session_id)
        )

    def _diffs(self, moves: Sequence[Move], root: str) -> tuple[FileDiff, ...]:
        return tuple(
            revert_diff.diff_move(
                move,
                step_journal.display_path(move.path, root),
                before=self._content(move.base),
                after=self._content(move.wanted),
            )
            for move in moves
            if not move.base.same(move.wanted)
        )

    async def _write_all(self, session_id: SessionID, moves: Sequence[Move]) -> None:
        for move in moves:
            try:
                await shielded(asyncio.to_thread(self._put, session_id, move))
            except FoundChangedError as error:
                raise RevertConflictError(move.path, "it is being changed just now") from error
            except OSError as error:
                raise RevertConflictError(move.path, error.strerror or str(error)) from error

    def _put(self, session_id: SessionID, move: Move) -> None:
        self._snapshots.note_revert(session_id, move.path)
        self._store.files.put(move)

    def _look_at_all(self, items: Iterable[FileChange | StagedFile]) -> Mapping[str, FileState]:
        """Return the current state of each file; its content is kept for clearing the revert."""
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
            logger.warning("%s cannot be read: %s", path, error.strerror)
            return UNKNOWN

    def _restore_files(self, session_id: SessionID, found: Sequence[RevertInProgress]) -> None:
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
                self._put(session_id, back)
            except FoundChangedError:
                # Not written yet, or changed by another program since: leave it.
                continue
            except OSError as error:
                logger.warning("%s cannot be restored: %s", item.path, error.strerror)

    def _content(self, state: FileState) -> bytes | None:
        return self._store.contents.read(state.digest) if state.has_content else None
