"""Finds the living processes of a data directory by the file locks they hold.

Every process holds an exclusive lock on its own file. The operating system releases it when the
process dies, however it dies: no clock, heartbeat or timeout is needed for that. A beat, the time
of the file, tells which of the living do not respond. It is counted and compared, not read as a
time, so that neither a clock that is set nor a pause of this process is taken for one of another.
"""

import fcntl
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Self

from perdure.core import limits

_SUFFIX: Final = ".lock"


class ProcessLocks:
    """Implements ports.Processes. A context manager; the lock is held while it is open."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = directory
        self._name = name
        self._handle: int | None = None
        self._missed: dict[str, tuple[int, int]] = {}
        """Of each other process its last beat, and for how many of ours it has not changed."""

    def __enter__(self) -> Self:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        # Locked before other processes can find it: an unlocked file means a dead process.
        hidden = os.path.join(self._directory, f".{self._name}")
        handle = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, b"%d\n" % os.getpid())
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
            # Without the directory nothing is known of any process.
            return not os.path.isdir(self._directory)
        except OSError:
            # Too many open files, a failing disk: a process that cannot be looked at is not dead.
            return True
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

    def beat(self) -> None:
        others = self.others()
        if others and self._handle is not None:
            # Alone, it would only keep the disk awake.
            # Not the kernel's time, of which two beats may see the same tick.
            now = time.time_ns()
            os.utime(self._handle, ns=(now, now))
        self._missed = {process: self._count_missed(process) for process in others}

    def silent(self) -> Mapping[str, str]:
        return {
            process: self._describe(process)
            for process, (_, missed) in self._missed.items()
            if missed >= limits.BEATS_MISSED_MAX
            # It may have gone on, or died, since the last look.
            and self._count_missed(process)[1]
            and self.alive(process)
        }

    def _count_missed(self, process: str) -> tuple[int, int]:
        before, missed = self._missed.get(process, (None, 0))
        try:
            beat = os.stat(self._path(process)).st_mtime_ns
        except OSError:
            beat = 0
        return beat, missed + 1 if beat == before else 0

    def _describe(self, process: str) -> str:
        try:
            with open(self._path(process), encoding="ascii") as file:
                return f"process {int(file.read(32))}"
        except (OSError, ValueError):
            return f"process {process}"

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

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {}
