"""Keeps what reverts need of the files that Sessions change.

One content store serves every Location, in a repository or not (ADR 0018). Each step has a journal
(runtime.files.step_journal); this is what journals share: the store, the last scan of each
directory, and which directories are watched now. A failure here never fails a step: what cannot be
kept is logged, and a revert leaves those files.
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
from perdure.ports import Database, Transaction
from perdure.schema.ids import SessionID
from perdure.schema.value import State, Value
from perdure.store.tables import file_change_table, revert_table

CONTENT_DIRECTORY: Final = "snapshots"
"""Below the data directory."""
_NANOS: Final = 1_000_000_000

logger = logging.getLogger(__name__)


class Watch(State):
    """A directory that is watched while a command of a Session runs."""

    session_id: SessionID
    root: str
    before: Tree = field(default_factory=dict[str, ScannedFile])
    since_nanos: int = 0
    named: dict[str, FileState] = field(default_factory=dict[str, FileState])
    """States that file tools of the same Session wrote meanwhile; those are recorded already."""
    others: set[str] = field(default_factory=set[str])
    """Paths that file tools of other Sessions changed meanwhile."""
    shared: bool = False
    """Whether a command of another Session ran meanwhile: a change may be of either."""


class SnapshotStore(Value):
    """The content store, and access to single files."""

    contents: ContentStore
    files: RestorableFiles


class FileSnapshots:
    def __init__(
        self,
        data_dir: str,
        database: Database,
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
        self._is_full = False

    async def look(self, root: str, path: str) -> FileState:
        """Return a file's state before a change, and keep its content durably. Raises OSError."""
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        return await asyncio.to_thread(
            self.store.files.read_state, root, path, bytes_max=bytes_max, durable=True
        )

    async def keep(self, data: bytes) -> None:
        """Keep the content that a file tool writes, so that a later diff can show it.

        Not durably: a revert does not need it. Raises OSError.
        """
        if len(data) <= limits.SNAPSHOT_WRITTEN_BYTES_MAX and not self._is_full:
            await asyncio.to_thread(self.store.contents.keep, data)

    def note_write(self, session_id: SessionID, path: str, after: FileState) -> None:
        """Note that a file tool is about to write `path`, so that no watch records it again."""
        for watch in self._watches:
            if watch.session_id == session_id:
                watch.named[path] = after
            else:
                watch.others.add(path)

    async def begin_watch(self, session_id: SessionID, root: str) -> Watch | None:
        """Scan a directory before a command; None, with a warning, if it cannot be scanned."""
        if self._is_full:
            return None
        # Listed before the scan: writes of file tools meanwhile are not the command's changes.
        watch = Watch(session_id, root)
        for other in self._watches:
            if other.session_id != session_id and _overlap(other.root, root):
                other.shared = watch.shared = True
        self._watches.append(watch)
        try:
            watch.since_nanos, watch.before = await asyncio.to_thread(self._scan, root)
        except (OSError, TreeTooLargeError) as error:
            logger.warning("commands in %s are not watched: %s", root, _reason(error))
            self._watches.remove(watch)
            return None
        except asyncio.CancelledError:
            self._watches.remove(watch)
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
            self._watches.remove(watch)
        found = tree_scan.compare_trees(
            watch.root, watch.before, after, since_nanos=watch.since_nanos
        )
        own = [_attribute(each, watch) for each in found if each.path not in watch.others]
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


def _attribute(change: FileChange, watch: Watch) -> FileChange:
    """Return the command's part of a change."""
    before = watch.named.get(change.path, UNKNOWN if watch.shared else change.before)
    return FileChange(root=change.root, path=change.path, before=before, after=change.after)


def _overlap(one: str, two: str) -> bool:
    return f"{one}/".startswith(f"{two}/") or f"{two}/".startswith(f"{one}/")


def _reason(error: OSError | TreeTooLargeError) -> str:
    return str(error) if isinstance(error, TreeTooLargeError) else error.strerror or str(error)
