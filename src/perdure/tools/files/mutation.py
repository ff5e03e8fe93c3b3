"""Changes files, one change at a time for each path.

The locks are shared by all Locations of the process, because Locations may overlap. Callers pass
only targets that PathAccess resolved and that were approved.

Invariant: a change based on read bytes commits only if the file still holds them, and only below
the approved directory, even if the path was replaced since.
"""

import asyncio
import posixpath
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from perdure.ports import Filesystem
from perdure.ports.file_journal import NO_JOURNAL, Journal
from perdure.schema.ids import SessionID
from perdure.tools.files import read_tracking
from perdure.tools.files.path_access import Target
from perdure.tools.files.read_tracking import ReadTracker


class StaleContentError(Exception):
    """The file has changed since it was read."""


class FileMutations:
    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self.read_tracker = ReadTracker()
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def locked(self, path: str) -> AsyncGenerator[None]:
        """Hold the process-wide lock of `path`."""
        lock = self._locks.setdefault(path, asyncio.Lock())
        self._users[path] = self._users.get(path, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[path] -= 1
            if not self._users[path]:
                del self._locks[path], self._users[path]

    async def require_current(self, session_id: SessionID, target: Target, data: bytes) -> None:
        """Raises StaleContentError when the Session last saw other content than `data`."""
        known = self.read_tracker.version(session_id, target.path)
        if known is not None and known != await read_tracking.version_in(data):
            raise StaleContentError(target.path)

    async def load_version(self, target: Target) -> str:
        """The version of the file as it is now."""
        return await read_tracking.version_at(self._files(target), target.path)

    async def note(self, session_id: SessionID, target: Target, data: bytes) -> None:
        """Record that the Session knows the content `data`, by reading or writing it."""
        version = await read_tracking.version_in(data)
        self.read_tracker.note(session_id, target.path, version)

    async def create(self, target: Target, data: bytes, *, journal: Journal = NO_JOURNAL) -> None:
        """Create the file and the directories above it; raises FileExistsError."""
        files = self._files(target)
        async with journal.changing(target.root, target.path, data):
            await files.make_directories(posixpath.dirname(target.path))
            await files.create_exclusive(target.path, data, mode=0o666)

    async def replace(self, target: Target, data: bytes, *, journal: Journal = NO_JOURNAL) -> None:
        """Replace the file, whatever it holds."""
        async with journal.changing(target.root, target.path, data):
            await self._files(target).write_atomic(target.path, data)

    async def replace_if_unchanged(
        self, target: Target, *, read: bytes, data: bytes, journal: Journal = NO_JOURNAL
    ) -> None:
        """Replace the file. Raises StaleContentError when it no longer holds `read`."""
        await self._require_unchanged(target, read)
        await self.replace(target, data, journal=journal)

    async def remove_if_unchanged(
        self, target: Target, *, read: bytes, journal: Journal = NO_JOURNAL
    ) -> None:
        """Remove the file. Raises StaleContentError when it no longer holds `read`."""
        await self._require_unchanged(target, read)
        async with journal.changing(target.root, target.path, None):
            await self._files(target).remove(target.path)

    def _files(self, target: Target) -> Filesystem:
        return self._filesystem.confined_to(target.root)

    async def _require_unchanged(self, target: Target, read: bytes) -> None:
        try:
            # One byte more shows that the file is longer, without reading all of it.
            current = await self._files(target).read(target.path, bytes_max=len(read) + 1)
        except FileNotFoundError as error:
            raise StaleContentError(target.path) from error
        if current != read:
            raise StaleContentError(target.path)
