"""Cache for small files that are read often and change rarely.

A file's signature is its modification time, size and inode; while it is unchanged, a read costs one
stat. Meant for configuration and repository metadata; content that a model or a user edits goes
through ports.Filesystem.

Invariant: a value is never older than the signature at the time of the call. Only ENOENT and
ENOTDIR mean that a path is absent; every other failure is raised as OSError, because a path that
cannot be looked at may be there.
"""

import errno
import os
import stat
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

Signature = tuple[int, int, int]


class FileTooLargeError(OSError):
    def __init__(self, path: str, bytes_max: int) -> None:
        super().__init__(f"{path} is larger than {bytes_max} bytes")


class NotAFileError(OSError):
    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a file", path)


def exists(path: str) -> bool:
    """Whether the path exists. Raises OSError when it cannot be looked at."""
    return _status(path) is not None


def is_directory(path: str) -> bool:
    """Whether the path is a directory. Raises OSError when it cannot be looked at."""
    status = _status(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def signature(path: str) -> Signature | None:
    """The signature of a file; None when it does not exist. Raises OSError."""
    status = _status(path)
    return None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino)


def real_path(path: str) -> str:
    """The path without links, as far as it exists. Raises OSError when one cannot be followed."""
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)


def ignores_case(path: str) -> bool:
    """Whether the file system finds this existing path in another case too."""
    folder, name = os.path.split(path)
    try:
        # Without following links: a link may have the name in the other case.
        found, swapped = os.lstat(path), os.lstat(os.path.join(folder, name.swapcase()))
    except OSError:
        return False
    return name != name.swapcase() and os.path.samestat(found, swapped)


def read(path: str, *, bytes_max: int) -> bytes | None:
    """The content of a regular file; None when the path does not exist. Raises OSError."""
    try:
        # Non-blocking, because a named pipe would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFileError(path)
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

    def has_read(self, path: str) -> bool:
        """Whether a value of the file is cached, perhaps of an earlier version."""
        return path in self._kept

    def last_read(self, path: str) -> T | None:
        """The value as it was last loaded; None when the file was never seen."""
        kept = self._kept.get(path)
        return None if kept is None else kept[1]

    def get(self, path: str) -> T | None:
        """The loaded value; None when there is no such file. Raises OSError."""
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


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
