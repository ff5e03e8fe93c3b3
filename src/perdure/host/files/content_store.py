"""Content-addressed store of file contents from before a Session changed them.

Each content is one private file below the data directory, named by its digest and written
atomically. runtime.files.snapshots removes contents that are no longer needed. Methods block and
must run on a thread.

Invariant: a read returns what was kept; a damaged or missing content is an error.
"""

import itertools
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Final

from perdure.core.files import file_state

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TEMPORARY: Final = ".tmp"
_CLOCK: Final = "clock"


class ContentLostError(OSError):
    """The content is missing or damaged."""


class ContentStore:
    def __init__(self, directory: str, *, numbers: Iterator[int] | None = None) -> None:
        self._directory = directory
        self._numbers = numbers or itertools.count(1)

    @property
    def directory(self) -> str:
        return self._directory

    def keep(self, data: bytes, *, durable: bool = False) -> str:
        """Store content; returns its digest. With `durable` it is synced. Raises OSError."""
        digest = file_state.digest_of(data)
        path = self._path(digest)
        with suppress(FileNotFoundError):
            # Update its time, so that a running sweep does not remove it.
            os.utime(path)
            return digest
        temporary = f"{path}.{os.getpid()}-{next(self._numbers)}{_TEMPORARY}"
        try:
            descriptor = os.open(temporary, _CREATE, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            descriptor = os.open(temporary, _CREATE, 0o600)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                _write(file.fileno(), data)
                if durable:
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        return digest

    def read(self, digest: str) -> bytes:
        """Read content by digest. Raises ContentLostError."""
        try:
            with open(self._path(digest), "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise ContentLostError(f"content {digest} is not kept any more") from error
        if file_state.digest_of(data) != digest:
            raise ContentLostError(f"content {digest} is damaged")
        return data

    def now_nanos(self) -> int:
        """The current time of the file system's own clock."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        path = f"{self._directory}/{_CLOCK}"
        with open(path, "wb"):
            os.utime(path)
        return os.stat(path).st_mtime_ns

    def free_bytes(self) -> int:
        """Free bytes on the disk."""
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize

    def sweep(self, needed: Collection[str], *, before_nanos: int) -> int:
        """Remove contents not `needed` and not kept since then; returns the remaining bytes."""
        remaining = 0
        for entry in self._entries():
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                digest = os.path.basename(os.path.dirname(entry.path)) + entry.name
                if digest in needed or status.st_mtime_ns >= before_nanos:
                    remaining += status.st_size
                else:
                    os.unlink(entry.path)
        return remaining

    def discard(self, digests: Iterable[str]) -> None:
        """Remove contents at once. Raises OSError."""
        for digest in digests:
            with suppress(FileNotFoundError):
                os.unlink(self._path(digest))

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with suppress(FileNotFoundError), os.scandir(self._directory) as folders:
            for folder in folders:
                if not folder.is_dir():
                    continue
                with os.scandir(folder.path) as entries:
                    yield from entries

    def _path(self, digest: str) -> str:
        return f"{self._directory}/{digest[:2]}/{digest[2:]}"


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
