"""Which processes share this data directory, by the locks they hold.

Every process keeps an exclusive lock on a file of its own. The operating system drops it the
moment the process dies, however it dies: no clock, no heartbeat, no lease to run out.
"""

import fcntl
import os
from contextlib import suppress
from typing import Final, Self

_SUFFIX: Final = ".lock"


class ProcessLocks:
    """Use as a context manager; the lock is held while it is open."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name
        self._handle: int | None = None

    def __enter__(self) -> Self:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        # Locked before it can be found: an unlocked file is taken for a dead process.
        hidden = os.path.join(self._directory, f".{self._name}")
        handle = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(hidden, self._path(self._name))
        self._handle = handle
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self._handle is not None
        # Unlinked while locked: nobody can find the file and take a dead process for it.
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
            # Shared: two that look at once must not take each other for the owner.
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
        # Names come from our own table, but a path must never leave the directory.
        assert process
        assert "/" not in process
        return os.path.join(self._directory, process + _SUFFIX)


class SingleProcess:
    """A store that no other process can see: in memory, or in a simulation."""

    me = "alone"

    def alive(self, process: str) -> bool:
        return process == self.me

    def others(self) -> frozenset[str]:
        return frozenset()
