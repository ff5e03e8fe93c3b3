"""Snapshots: what it takes to take back what the steps of Sessions do to files.

One content store serves every Location, whether it lies in a repository or not (ADR 0018). A step
has a journal (runtime.files.step_journal); here is what all journals share: the store, what was
last seen of each directory, and who is watching one just now. Nothing here is ever a reason for a
step to fail: what cannot be kept is logged, and a revert leaves those files alone.
"""

import asyncio
import logging
import os
from collections import OrderedDict
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
    """What file tools of the same Session made of paths meanwhile: their changes are noted."""
    others: set[str] = field(default_factory=set[str])
    """Paths that file tools of other Sessions changed meanwhile."""
    shared: bool = False
    """Whether a command of another Session ran meanwhile: nobody can tell whose a change is."""


class SnapshotStore(Value):
    """Where contents are, and how single files are reached."""

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
        """What a file is just before it is changed, kept for good. Raises OSError."""
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        return await asyncio.to_thread(
            self.store.files.read_state, root, path, bytes_max=bytes_max, durable=True
        )

    def named(self, session_id: SessionID, path: str, after: FileState) -> None:
        """A file tool is about to make `after` of `path`."""
        for watch in self._watches:
            if watch.session_id == session_id:
                watch.named[path] = after
            else:
                watch.others.add(path)

    async def watch(self, session_id: SessionID, root: str) -> Watch | None:
        """Look at a directory before a command; None, and a word in the log, when it cannot be."""
        if self._is_full:
            return None
        # Known before the look: what file tools do meanwhile must not be taken for the command's.
        watch = Watch(session_id, root)
        for other in self._watches:
            if other.session_id != session_id and _overlap(other.root, root):
                other.shared = watch.shared = True
        self._watches.append(watch)
        try:
            watch.since_nanos, watch.before = await asyncio.to_thread(self._scanned, root)
        except (OSError, TreeTooLargeError) as error:
            logger.warning("commands in %s are not watched: %s", root, _reason(error))
            self._watches.remove(watch)
            return None
        except asyncio.CancelledError:
            self._watches.remove(watch)
            raise
        return watch

    async def seen(self, watch: Watch) -> list[FileChange]:
        """What has changed since `watch` began, which ends here."""
        try:
            _, after = await asyncio.to_thread(self._scanned, watch.root)
        except (OSError, TreeTooLargeError) as error:
            logger.warning("changes in %s are not kept: %s", watch.root, _reason(error))
            return []
        finally:
            self._watches.remove(watch)
        found = tree_scan.compare_trees(
            watch.root, watch.before, after, since_nanos=watch.since_nanos
        )
        own = [_attributed(each, watch) for each in found if each.path not in watch.others]
        return [each for each in own if not each.before.same(each.after)]

    async def sweep(self) -> None:
        """Remove the contents that no Session needs any more."""

        async def needed(tx: Transaction) -> set[str]:
            return await file_change_table.list_digests(tx) | await revert_table.list_digests(tx)

        wanted = await self.database.read(needed)
        try:
            left = await asyncio.to_thread(self._swept, wanted)
        except OSError as error:
            logger.warning("snapshots are not swept: %s", _reason(error))
            return
        self._is_full = left > limits.SNAPSHOT_STORE_BYTES_MAX
        if self._is_full:
            logger.warning("snapshots take %d bytes: commands are not watched any more", left)

    def _scanned(self, root: str) -> tuple[int, Tree]:
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

    def _swept(self, needed: set[str]) -> int:
        contents = self.store.contents
        if not os.path.isdir(contents.directory):
            return 0
        before = contents.now_nanos() - limits.SNAPSHOT_KEPT_SECONDS * _NANOS
        return contents.sweep(needed, before_nanos=before)


def _attributed(change: FileChange, watch: Watch) -> FileChange:
    """The command's part of a change."""
    before = watch.named.get(change.path, UNKNOWN if watch.shared else change.before)
    return FileChange(root=change.root, path=change.path, before=before, after=change.after)


def _overlap(one: str, two: str) -> bool:
    return f"{one}/".startswith(f"{two}/") or f"{two}/".startswith(f"{one}/")


def _reason(error: OSError | TreeTooLargeError) -> str:
    return str(error) if isinstance(error, TreeTooLargeError) else error.strerror or str(error)
