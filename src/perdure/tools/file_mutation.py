"""File Mutation: changes of files, one at a time for each path.

The locks are shared by every Location of the process, because Locations may overlap. Only paths
that an authority has resolved and a person or rule has approved come here.

Invariant: a change based on what was read commits only if those bytes are still there.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from perdure.core import exact_edit
from perdure.ports import Filesystem

UTF8_BOM: Final = exact_edit.BOM.encode()


class StaleContentError(Exception):
    """The file is not what was read before: somebody else has changed it."""


class FileMutations:
    def __init__(self, filesystem: Filesystem) -> None:
        self._filesystem = filesystem
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def locked(self, path: str) -> AsyncGenerator[None]:
        """Alone with `path`, as far as this process goes."""
        lock = self._locks.setdefault(path, asyncio.Lock())
        self._users[path] = self._users.get(path, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[path] -= 1
            if not self._users[path]:
                del self._locks[path], self._users[path]

    async def write_text(self, path: str, text: str, *, existing: bool) -> None:
        """Create or replace. A byte order mark that was there stays, and is there once."""
        marked = existing and await self._filesystem.read(path, bytes_max=len(UTF8_BOM)) == UTF8_BOM
        body = text.lstrip(exact_edit.BOM)
        mark = exact_edit.BOM if marked or body != text else ""
        await self._filesystem.write_atomic(path, f"{mark}{body}".encode())

    async def replace_if_unchanged(self, path: str, *, read: bytes, data: bytes) -> None:
        """Raises StaleContentError when the file no longer holds `read`."""
        await self._require_unchanged(path, read)
        await self._filesystem.write_atomic(path, data)

    async def remove_if_unchanged(self, path: str, *, read: bytes) -> None:
        """Raises StaleContentError when the file no longer holds `read`."""
        await self._require_unchanged(path, read)
        await self._filesystem.remove(path)

    async def _require_unchanged(self, path: str, read: bytes) -> None:
        try:
            # One byte more than was read tells a longer file without reading all of it.
            current = await self._filesystem.read(path, bytes_max=len(read) + 1)
        except FileNotFoundError as error:
            raise StaleContentError(path) from error
        if current != read:
            raise StaleContentError(path)
