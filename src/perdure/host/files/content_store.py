"""Contents by digest: what files held before a Session changed them, below the data directory.

A content is one private file, named by its digest, and appears whole. Nothing here knows who needs
it; what nobody needs any more is swept (runtime.files.snapshots). Methods block and are for
threads.

Invariant: what is read is what was kept; a damaged or missing content is an error, not other bytes.
"""

import itertools
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

from perdure.core.files import file_state

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TEMPORARY: Final = ".tmp"
_CLOCK: Final = "clock"


class ContentLostError(OSError):
    """The content is not there any more, or is not what was kept."""


class ContentStore:
    def __init__(self, directory: str, *, numbers: Iterator[int] | None = None) -> None:
        self._directory = directory
        self._numbers = numbers or itertools.count(1)

    @property
    def directory(self) -> str:
        return self._directory

    def keep(self, data: bytes, *, durable: bool = False) -> str:
        """Its digest. With `durable` it is on the disk when this returns. Raises OSError."""
        digest = file_state.digest_of(data)
        path = self._path(digest)
        with suppress(FileNotFoundError):
            # Young again: a sweep that is under way must not take it.
            os.utime(path)
            return digest
        made = f"{path}.{os.getpid()}-{next(self._numbers)}{_TEMPORARY}"
        try:
            descriptor = os.open(made, _CREATE, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            descriptor = os.open(made, _CREATE, 0o600)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                _write(file.fileno(), data)
                if durable:
                    os.fsync(file.fileno())
            os.replace(made, path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(made)
            raise
        return digest

    def read(self, digest: str) -> bytes:
        """Raises ContentLostError."""
        try:
            with open(self._path(digest), "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise ContentLostError(f"content {digest} is not kept any more") from error
        if file_state.digest_of(data) != digest:
            raise ContentLostError(f"content {digest} is damaged")
        return data

    def now_nanos(self) -> int:
        """The time that a file is stamped with now: the kernel's, whatever other clocks say."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        path = f"{self._directory}/{_CLOCK}"
        with open(path, "wb"):
            os.utime(path)
        return os.stat(path).st_mtime_ns

    def free_bytes(self) -> int:
        """What the disk has left for us."""
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize

    def sweep(self, needed: Collection[str], *, before_nanos: int) -> int:
        """Remove what nobody needs and nobody kept since then; how many bytes are left."""
        left = 0
        for entry in self._entries():
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                digest = os.path.basename(os.path.dirname(entry.path)) + entry.name
                if digest in needed or status.st_mtime_ns >= before_nanos:
                    left += status.st_size
                else:
                    os.unlink(entry.path)
        return left

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        with suppress(FileNotFoundError), os.scandir(self._directory) as shelves:
            for shelf in shelves:
                if not shelf.is_dir():
                    continue
                with os.scandir(shelf.path) as entries:
                    yield from entries

    def _path(self, digest: str) -> str:
        return f"{self._directory}/{digest[:2]}/{digest[2:]}"


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
