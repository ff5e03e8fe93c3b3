"""The journal of one step: what its tools do to files, durable before it is done.

Each change is a row (store.tables.file_change_table) with the states before and after; the content
of before is in the content store by then. What cannot be kept, because a disk is full or a file too
large, is left out with a word in the log: a later revert finds the file in a state it does not
know, and leaves it alone.

Invariant: a file tool's change is noted before it is made, a command's before its call is settled.
"""

import asyncio
import logging
import os
import posixpath
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import accumulate

from msgspec import UNSET

from perdure.core.files import file_state, revert
from perdure.core.files.file_state import ABSENT, FileState
from perdure.core.files.paths import is_within
from perdure.core.files.revert import FileChange
from perdure.ports import DatabaseError, Transaction
from perdure.ports.file_journal import NoJournal
from perdure.runtime.files.snapshots import FileSnapshots, Watch
from perdure.runtime.tasks import shielded
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.message import StepSnapshot
from perdure.store.tables import file_change_table

logger = logging.getLogger(__name__)


class UnjournaledStep(NoJournal):
    """The journal of a step whose changes are not kept."""

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
        self._snapshots = snapshots
        self._session_id = session_id
        self._message_id = message_id
        self._root = root
        self.start = start
        """What names the Session's changes before this step; None when there are none."""
        self.end = start
        self._files: dict[str, int] = {}
        self._noting = asyncio.Lock()
        self._watching = asyncio.Lock()
        self._commands = 0
        self._watch: Watch | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """What this step has changed, as clients are shown it."""
        return tuple(sorted(path for path, times in self._files.items() if times))

    @property
    def snapshot(self) -> StepSnapshot:
        """As the step's events tell it; nothing before the Session's first change."""
        if self.end is None:
            return StepSnapshot()
        return StepSnapshot(start=self.start or UNSET, end=self.end, files=self.files)

    @asynccontextmanager
    async def changing(self, root: str, path: str, data: bytes | None) -> AsyncGenerator[None]:
        number = await self._named(root, path, data)
        try:
            yield
        except OSError:
            if number is not None:
                await shielded(self._not_made(number, path))
            raise

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        async with self._watching:
            if self._commands == 0:
                self._watch = await self._snapshots.watch(self._session_id, self._root)
            self._commands += 1
        try:
            yield
        finally:
            await shielded(self._command_ended())

    async def _named(self, root: str, path: str, data: bytes | None) -> int | None:
        try:
            before = await self._snapshots.look(root, path)
        except OSError as error:
            logger.warning("the change of %s is not kept: %s", path, error.strerror)
            return None
        after = _becomes(before, data)
        self._snapshots.named(self._session_id, path, after)
        if before.same(after):
            return None
        return await self._note(FileChange(root=root, path=path, before=before, after=after))

    async def _command_ended(self) -> None:
        """The last of the commands that ran side by side tells what they have done."""
        async with self._watching:
            self._commands -= 1
            watch = self._watch
            if self._commands or watch is None:
                return
            self._watch = None
            await self._note(*await self._snapshots.seen(watch))

    async def _note(self, *changes: FileChange) -> int | None:
        """Make rows of them, in one commit; the number of the last, None when there is none."""
        if not changes:
            return None
        async with self._noting:
            ends = list(accumulate(changes, revert.next_snapshot, initial=self.end or ""))[1:]

            async def job(tx: Transaction) -> int:
                number = 0
                for change, end in zip(changes, ends, strict=True):
                    number = await file_change_table.insert(
                        tx, self._session_id, self._message_id, change, snapshot=end
                    )
                return number

            try:
                number = await self._snapshots.database.write(job)
            except DatabaseError as error:
                logger.warning("the change of %s is not kept: %s", changes[-1].path, error)
                return None
            self.end = ends[-1]
        for change in changes:
            name = shown(change.path, self._root)
            self._files[name] = self._files.get(name, 0) + 1
        return number

    async def _not_made(self, number: int, path: str) -> None:
        async with self._noting:
            try:
                await self._snapshots.database.write(
                    lambda tx: file_change_table.remove(tx, number)
                )
                self.end = await self._snapshots.database.read(
                    lambda tx: file_change_table.latest_snapshot(tx, self._session_id)
                )
            except DatabaseError as error:
                logger.warning("the change of %s was not made: %s", path, error)
                return
        self._files[shown(path, self._root)] -= 1


async def begin(
    snapshots: FileSnapshots, session_id: SessionID, message_id: MessageID, *, directory: str
) -> StepJournal:
    """The journal of a step that works in `directory`."""
    start = await snapshots.database.read(
        lambda tx: file_change_table.latest_snapshot(tx, session_id)
    )
    return StepJournal(snapshots, session_id, message_id, root=root_of(directory), start=start)


def root_of(directory: str) -> str:
    """The canonical directory of a Location."""
    return os.path.realpath(directory)


def shown(path: str, root: str) -> str:
    """A path as clients see it: relative to the Location, if it lies there."""
    return posixpath.relpath(path, root) if is_within(path, root) else path


def _becomes(before: FileState, data: bytes | None) -> FileState:
    if data is None:
        return ABSENT
    return FileState("file", file_state.digest_of(data), before.mode)
