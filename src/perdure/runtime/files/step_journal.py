"""Records the file changes of one step, before they are made.

Each change is a row (store.tables.file_change_table) with the states before and after; the content
before is in the content store by then. A change that cannot be recorded, because a disk is full or
a file too large, is logged and left out: a later revert finds the file in an unknown state and
leaves it.

Invariant: a file tool's change is recorded before it is made, a command's before its call settles.
"""

import asyncio
import logging
import os
import posixpath
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cached_property
from itertools import accumulate

from msgspec import UNSET

from perdure.core.files import file_state, revert
from perdure.core.files.file_state import ABSENT, FileState
from perdure.core.files.paths import is_within
from perdure.core.files.revert import FileChange
from perdure.ports import Transaction
from perdure.ports.file_journal import NoJournal
from perdure.runtime.database_errors import TolerateFailure
from perdure.runtime.files.snapshots import FileSnapshots, Watch
from perdure.runtime.tasks import shielded
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.message import StepSnapshot
from perdure.store.tables import file_change_table

logger = logging.getLogger(__name__)


class UnjournaledStep(NoJournal):
    """The journal of a step whose changes are not recorded."""

    @property
    def snapshot(self) -> StepSnapshot:
        return StepSnapshot()


class StepJournal:
    """Implements ports.file_journal.Journal."""

    def __init__(
        self,
        snapshots: FileSnapshots,
        session_id: SessionID,
        message_id: MessageID,
        *,
        root: str,
        start: str | None,
    ) -> None:
        """`root` is the directory of the Location, which may be a link."""
        self._snapshots = snapshots
        self._session_id = session_id
        self._message_id = message_id
        self._given_root = root
        self.start = start
        """Name of the Session's changes before this step; None if there are none."""
        self.end = start
        self._files: dict[str, int] = {}
        self._recording = asyncio.Lock()
        self._watching = asyncio.Lock()
        self._commands = 0
        self._watch: Watch | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Paths that this step has changed, as clients see them."""
        return tuple(sorted(path for path, times in self._files.items() if times))

    @property
    def snapshot(self) -> StepSnapshot:
        """The snapshot for the step's events; empty before the Session's first change."""
        if self.end is None:
            return StepSnapshot()
        return StepSnapshot(start=self.start or UNSET, end=self.end, files=self.files)

    @asynccontextmanager
    async def changing(self, root: str, path: str, data: bytes | None) -> AsyncGenerator[None]:
        number = await self._record_write(root, path, data)
        try:
            yield
        except OSError:
            if number is not None:
                await shielded(self._remove_record(number, path))
            raise

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        async with self._watching:
            if self._commands == 0:
                self._watch = await self._snapshots.begin_watch(self._session_id, self._root)
            self._commands += 1
        try:
            yield
        finally:
            await shielded(self._end_command())

    async def _record_write(self, root: str, path: str, data: bytes | None) -> int | None:
        try:
            before = await self._snapshots.begin_write(self._session_id, root, path)
        except OSError as error:
            logger.warning("a revert will not know the change of %s: %s", path, error.strerror)
            return None
        after = _state_after(before, data)
        self._snapshots.note_write(self._session_id, path, after)
        if before.same(after):
            return None
        if data is not None:
            await self._keep(path, data)
        return await self._record(FileChange(root=root, path=path, before=before, after=after))

    async def _keep(self, path: str, data: bytes) -> None:
        try:
            await self._snapshots.keep(data)
        except OSError as error:
            logger.warning("a diff will not show what %s became: %s", path, error.strerror)

    async def _end_command(self) -> None:
        """Record what parallel commands changed when the last of them ends."""
        async with self._watching:
            self._commands -= 1
            watch = self._watch
            if self._commands or watch is None:
                return
            self._watch = None
            await self._record(*await self._snapshots.end_watch(watch))

    @cached_property
    def _root(self) -> str:
        # Resolved with the first change: most steps change no file.
        return resolve_root(self._given_root)

    async def _record(self, *changes: FileChange) -> int | None:
        """Store the changes in one commit; return the number of the last, None if none is."""
        if not changes:
            return None
        async with self._recording:
            ends = list(accumulate(changes, revert.next_snapshot, initial=self.end or ""))[1:]

            async def job(tx: Transaction) -> int:
                number = 0
                for change, end in zip(changes, ends, strict=True):
                    number = await file_change_table.insert(
                        tx, self._session_id, self._message_id, change, snapshot=end
                    )
                return number

            number = None
            with TolerateFailure(f"a revert will not know the change of {changes[-1].path}"):
                number = await self._snapshots.database.write(job)
            if number is None:
                return None
            self.end = ends[-1]
        for change in changes:
            name = display_path(change.path, self._root)
            self._files[name] = self._files.get(name, 0) + 1
        return number

    async def _remove_record(self, number: int, path: str) -> None:
        async with self._recording:
            with TolerateFailure(f"the change of {path} stays recorded, but was not made"):
                await self._snapshots.database.write(
                    lambda tx: file_change_table.remove(tx, number)
                )
                self.end = await self._snapshots.database.read(
                    lambda tx: file_change_table.latest_snapshot(tx, self._session_id)
                )
                self._files[display_path(path, self._root)] -= 1


def resolve_root(directory: str) -> str:
    """Return the canonical directory of a Location."""
    return os.path.realpath(directory)


def display_path(path: str, root: str) -> str:
    """Return a path as clients see it: relative to the Location, if it is inside."""
    return posixpath.relpath(path, root) if is_within(path, root) else path


def _state_after(before: FileState, data: bytes | None) -> FileState:
    if data is None:
        return ABSENT
    return FileState("file", file_state.digest_of(data), before.mode)
