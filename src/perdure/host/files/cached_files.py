"""Cache for small files that are read often and change rarely.

A file's signature is its modification time, size and inode; while it is unchanged, a read costs one
stat. Meant for configuration and repository metadata; content that a model or a user edits goes
through ports.Filesystem.

Invariant: a value is never older than the signature at the time of the call.
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
    """Whether the path exists: the quickest check for files that usually do not."""
    try:
        return os.access(path, os.F_OK)
    except ValueError:
        return False


def signature(path: str) -> Signature | None:
    """The signature of a file; None when it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read(path: str, *, bytes_max: int) -> bytes | None:
    """The content of a regular file; None when there is none. Raises OSError."""
    try:
        # Non-blocking, because a named pipe would block.
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
    """Values that `load` makes of files, cached while the signature is unchanged."""

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._kept: dict[str, tuple[Signature, T]] = {}

    def get(self, path: str) -> T | None:
        """The loaded value; None when there is no such file."""
        current = signature(path)
        if current is None:
            self._kept.pop(path, None)
            return None
        kept = self._kept.get(path)
        if kept is not None and kept[0] == current:
            return kept[1]
        value = self._load(path)
        self._kept[path] = current, value
        return value
