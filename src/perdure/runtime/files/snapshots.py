"""Keeps what reverts need of the files that Sessions change.

One content store serves every Location, in a repository or not (ADR 0018). Each step has a journal
(runtime.files.step_journal); this is what journals share: the store, the last scan of each
directory, and which directories are watched now, in this process and in others. A failure here
never fails a step: what cannot be kept is logged, and a revert leaves those files.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.files.file_state import UNKNOWN, FileState
from perdure.core.files.revert import FileChange
from perdure.host.files import tree_scan
from perdure.host.files.content_store import ContentStore
from perdure.host.files.restorable import RestorableFiles
from perdure.host.files.tree_scan import ScannedFile, Tree, TreeScanner, TreeTooLargeError
from perdure.host.files.watch_marks import Mark, Noted, WatchMarks
from perdure.ports import Database, Processes, Transaction
from perdure.schema.ids import SessionID
from perdure.schema.value import State, Value
from perdure.store.tables import file_change_table, revert_table

CONTENT_DIRECTORY: Final = "snapshots"
WATCHES_DIRECTORY: Final = "watches"
"""Below the data directory."""
_NANOS: Final = 1_000_000_000

logger = logging.getLogger(__name__)


class Watch(State):
    """A directory that is watched while a command of a Session runs."""

    session_id: SessionID
    root: str
    mark: Mark
    before: Tree = field(default_factory=dict[str, ScannedFile])
    since_nanos: int = 0
    named: dict[str, FileState] = field(default_factory=dict[str, FileState])
    """States that file tools of the same Session wrote meanwhile; those are recorded already."""


class SnapshotStore(Value):
    """The content store, and access to single files."""

    contents: ContentStore
    files: RestorableFiles


class FileSnapshots:
    def __init__(
        self,
        data_dir: str,
        database: Database,
        processes: Processes,
        *,
        files_max: int = limits.SNAPSHOT_TREE_FILES_MAX,
    ) -> None:
        self.database = database
        contents = ContentStore(f"{data_dir}/{CONTENT_DIRECTORY}")
        self.store = SnapshotStore(contents, RestorableFiles(contents))
        self._scanner = TreeScanner(
            self.store.files, own=(os.path.realpath(data_dir),), files_max=files_max
        )
        self._trees: OrderedDict[str, Tree] = OrderedDict()
        self._watches: list[Watch] = []
        self._marks = WatchMarks(f"{data_dir}/{WATCHES_DIRECTORY}", processes)
        self._is_full = False

    async def look(self, root: str, path: str) -> FileState:
        """Return a file's state, and keep its content durably. Raises OSError."""
        return await asyncio.to_thread(self._look, root, path)

    async def begin_write(self, session_id: SessionID, root: str, path: str) -> FileState:
        """Return a file's state before a file tool changes it, and keep its content durably.

        No watch of another Session takes the change for its command's. Raises OSError.
        """
        return await asyncio.to_thread(self._begin_write, session_id, root, path)

    async def keep(self, data: bytes) -> None:
        """Keep the content that a file tool writes, so that a later diff can show it.

        Not durably: a revert does not need it. Raises OSError.
        """
        if len(data) <= limits.SNAPSHOT_WRITTEN_BYTES_MAX and not self._is_full:
            await asyncio.to_thread(self.store.contents.keep, data)

    def note_write(self, session_id: SessionID, path: str, after: FileState) -> None:
        """Note what a file tool is about to write, so that no watch of its Session records it."""
        for watch in self._watches:
            if watch.session_id == session_id:
                watch.named[path] = after

    def note_revert(self, session_id: SessionID, path: str) -> None:
        """Note that a revert is about to write a file. Raises OSError."""
        self._marks.note_write(session_id, path)

    async def begin_watch(self, session_id: SessionID, root: str) -> Watch | None:
        """Scan a directory before a command; None, with a warning, if it cannot be scanned."""
        if self._is_full:
            return None
        # Marked before the scan: writes of others meanwhile are not the command's changes. Not on a
        # thread, so that no interrupt comes between the mark and its removal.
        try:
            watch = Watch(session_id, root, self._marks.begin(session_id, root))
        except OSError as error:
            logger.warning("commands in %s are not watched: %s", root, _reason(error))
            return None
        self._watches.append(watch)
        try:
            watch.since_nanos, watch.before = await asyncio.to_thread(self._scan, root)
        except (OSError, TreeTooLargeError) as error:
            logger.warning("commands in %s are not watched: %s", root, _reason(error))
            self._forget(watch)
            return None
        except asyncio.CancelledError:
            self._forget(watch)
            raise
        return watch

    async def end_watch(self, watch: Watch) -> list[FileChange]:
        """Return what has changed since the watch began."""
        try:
            _, after = await asyncio.to_thread(self._scan, watch.root)
        except (OSError, TreeTooLargeError) as error:
            logger.warning(
                "a revert will not know changes of commands in %s: %s", watch.root, _reason(error)
            )
            return []
        finally:
            noted = self._forget(watch)
        found = tree_scan.compare_trees(
            watch.root, watch.before, after, since_nanos=watch.since_nanos
        )
        own = [_attribute(each, watch, noted) for each in found if each.path not in noted.paths]
        return [each for each in own if not each.before.same(each.after)]

    async def discard(self, digests: Iterable[str]) -> None:
        """Remove contents of a deleted Session, unless another Session needs them."""
        # A later scan keeps the contents again that it finds.
        self._trees.clear()
        unneeded = set(digests) - await self.database.read(_list_needed)
        try:
            await asyncio.to_thread(self.store.contents.discard, unneeded)
        except OSError as error:
            logger.warning("contents of a deleted Session are left: %s", _reason(error))

    async def sweep(self) -> None:
        """Remove the contents that no Session needs any more."""
        wanted = await self.database.read(_list_needed)
        try:
            left = await asyncio.to_thread(self._sweep, wanted)
        except OSError as error:
            logger.warning("snapshots are not swept: %s", _reason(error))
            return
        self._is_full = left > limits.SNAPSHOT_STORE_BYTES_MAX
        if self._is_full:
            logger.warning("snapshots take %d bytes: commands are not watched any more", left)

    def _begin_write(self, session_id: SessionID, root: str, path: str) -> FileState:
        self._marks.note_write(session_id, path)
        return self._look(root, path)

    def _look(self, root: str, path: str) -> FileState:
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        return self.store.files.read_state(root, path, bytes_max=bytes_max, durable=True)

    def _forget(self, watch: Watch) -> Noted:
        self._watches.remove(watch)
        return self._marks.end(watch.mark)

    def _scan(self, root: str) -> tuple[int, Tree]:
        contents = self.store.contents
        now = contents.now_nanos()
        if contents.free_bytes() < limits.SNAPSHOT_DISK_FREE_MIN:
            raise OSError("the disk of the data directory is nearly full")
        tree = self._scanner.scan(root, self._trees.get(root, {}), now_nanos=now)
        self._trees[root] = tree
        self._trees.move_to_end(root)
        while len(self._trees) > limits.SNAPSHOT_TREES_REMEMBERED_MAX:
            self._trees.popitem(last=False)
        return now, tree

    def _sweep(self, needed: set[str]) -> int:
        contents = self.store.contents
        if not os.path.isdir(contents.directory):
            return 0
        before = contents.now_nanos() - limits.SNAPSHOT_KEPT_SECONDS * _NANOS
        return contents.sweep(needed, before_nanos=before)


async def _list_needed(tx: Transaction) -> set[str]:
    return await file_change_table.list_digests(tx) | await revert_table.list_digests(tx)


def _attribute(change: FileChange, watch: Watch, noted: Noted) -> FileChange:
    """Return the command's part of a change."""
    before = watch.named.get(change.path, UNKNOWN if noted.shared else change.before)
    return FileChange(root=change.root, path=change.path, before=before, after=change.after)


def _reason(error: OSError | TreeTooLargeError) -> str:
    return str(error) if isinstance(error, TreeTooLargeError) else error.strerror or str(error)
