"""Small files that are read often and change rarely: read once, then only looked at.

A file is known by its signature: time of change, size and inode. Reading again costs one stat
while the signature stays. Meant for configuration and repository metadata; content that a model
or a user edits goes through ports.Filesystem.

Invariant: a value is never older than the signature that was current when it was asked for.
"""

import os
import stat
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

Signature = tuple[int, int, int]


class FileTooLargeError(OSError):
    def __init__(self, path: str, bytes_max: int) -> None:
        super().__init__(f"{path} is larger than {bytes_max} bytes")


def exists(path: str) -> bool:
    """Whether there is such a file: the quickest way to know of one that mostly is not there."""
    try:
        return os.access(path, os.F_OK)
    except ValueError:
        return False


def signature(path: str) -> Signature | None:
    """What to compare to know whether `path` changed; None when there is no such file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read(path: str, *, bytes_max: int) -> bytes | None:
    """The content of a regular file; None when there is none. Raises OSError when it fails."""
    try:
        # A pipe would block and a device never end: look before opening, and do not wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(bytes_max + 1)
    finally:
        os.close(descriptor)
    if len(data) > bytes_max:
        raise FileTooLargeError(path, bytes_max)
    return data


class CachedFiles(Generic[T]):
    """What `load` made of each file, kept while the file's signature stays the same."""

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._kept: dict[str, tuple[Signature, T]] = {}

    def get(self, path: str) -> T | None:
        """The loaded value; None when there is no such file."""
        now = signature(path)
        if now is None:
            self._kept.pop(path, None)
            return None
        kept = self._kept.get(path)
        if kept is not None and kept[0] == now:
            return kept[1]
        value = self._load(path)
        self._kept[path] = now, value
        return value
