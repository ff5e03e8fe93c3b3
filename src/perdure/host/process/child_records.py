"""Records of the children of this process, so that they end when it dies.

Before a child starts, a file named after it is made in the data directory, and its environment
gets that name, which all its descendants inherit. The file is removed when the child and its group
have ended. So a file that remains names a child that this process could not end, and a variable
names its descendants, wherever they are now (host.process.orphans).

The files are not synced: a machine that loses them to a power loss has lost the children too.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal, Self

from perdure.host import log_context
from perdure.host.process import orphans, table
from perdure.host.process.orphans import Orphan
from perdure.host.process.watcher import Watcher

Reach = Literal["tree", "session"]
"""What ends with a child: all its descendants, or only those in its session (a terminal)."""


class ChildRecord:
    """The record of one child. `end` is called when nothing of the child is left.

    As a context manager around the start of the child, it ends when that fails.
    """

    def __init__(self, path: str | None, reach: Reach) -> None:
        self._path = path
        self._reach = reach

    def __enter__(self) -> Self:
        # A full disk must not prevent the command that would free it.
        if self._path is not None:
            with suppress(OSError):
                os.close(os.open(self._path, _NEW_FILE, 0o600))
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            self.end()

    def mark(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of the child, with the name of its record."""
        if self._path is None:
            return environment
        return {**environment, orphans.VARIABLE: orphans.name_of(self._path)}

    def started(self, pid: int) -> None:
        if self._path is None:
            return
        found = orphans.Record(
            leader=pid,
            identity=table.read_identity(pid),
            reach=self._reach,
            session=log_context.SESSION.get() or "",
        )
        with suppress(OSError):
            # Not truncated when opened: ext4 would write the file to disk when it is closed.
            file = os.open(self._path, os.O_WRONLY)
            try:
                os.write(file, found.to_line().encode())
            finally:
                os.close(file)

    def end(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)


class ChildRecords:
    """The records of this process; also ends the children of dead ones.

    Without a directory, nothing is recorded.
    """

    def __init__(self, directory: str | None = None, process: str = "") -> None:
        self._directory = directory
        self._process = process
        self._count = 0
        self._watcher: Watcher | None = None
        self._orphans: dict[str, asyncio.Task[tuple[Orphan, ...]]] = {}
        """By dead process: what it left running and could not be ended."""

    def begin(self, reach: Reach = "tree") -> ChildRecord:
        if self._directory is None:
            return ChildRecord(None, reach)
        if self._watcher is None:
            self._watcher = Watcher(self._directory, self._process)
        self._count += 1
        return ChildRecord(orphans.path_of(self._directory, self._process, self._count), reach)

    async def end_orphans(self, process: str) -> tuple[Orphan, ...]:
        """End the children of a dead process, once; returns those that still run."""
        if self._directory is None:
            return ()
        ending = self._orphans.get(process)
        if ending is None:
            work = asyncio.to_thread(orphans.end, self._directory, process)
            ending = asyncio.create_task(work, name=f"children of {process}")
            self._orphans[process] = ending
        return await asyncio.shield(ending)

    async def aclose(self) -> None:
        """Stop the watcher. It first ends children that are still recorded."""
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.stop)


_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
