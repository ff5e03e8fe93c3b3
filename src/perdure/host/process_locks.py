"""Finds the living processes of a data directory by the file locks they hold.

Every process holds an exclusive lock on its own file. The operating system releases it when the
process dies, however it dies: no clock, heartbeat or timeout is needed.
"""

import fcntl
import os
from contextlib import suppress
from typing import Final, Self

_SUFFIX: Final = ".lock"


class ProcessLocks:
    """Implements ports.Processes. A context manager; the lock is held while it is open."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name
        self._handle: int | None = None

    def __enter__(self) -> Self:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        # Locked before other processes can find it: an unlocked file means a dead process.
        hidden = os.path.join(self._directory, f".{self._name}")
        handle = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(hidden, self._path(self._name))
        self._handle = handle
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._handle is not None
        # Unlinked while locked, so that no process finds it unlocked.
        with suppress(FileNotFoundError):
            os.unlink(self._path(self._name))
        os.close(self._handle)

    @property
    def me(self) -> str:
        return self._name

    def alive(self, process: str) -> bool:
        if process == self._name:
            return True
        try:
            handle = os.open(self._path(process), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            # Shared, so that two processes that check at once do not block each other.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._path(process))
            return False
        finally:
            os.close(handle)

    def others(self) -> frozenset[str]:
        names = [name for name in os.listdir(self._directory) if name.endswith(_SUFFIX)]
        processes = (name.removesuffix(_SUFFIX) for name in names if name != self._own)
        return frozenset(process for process in processes if self.alive(process))

    @property
    def _own(self) -> str:
        return self._name + _SUFFIX

    def _path(self, process: str) -> str:
        # Names come from the database, but a path must never leave the directory.
        assert process
        assert "/" not in process
        return os.path.join(self._directory, process + _SUFFIX)


class SingleProcess:
    """The Processes of a store without other processes: in memory, or in a simulation."""

    me = "alone"

    def alive(self, process: str) -> bool:
        return process == self.me

    def others(self) -> frozenset[str]:
        return frozenset()
