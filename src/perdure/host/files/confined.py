"""Opens paths below a pinned directory without following any link.

A path that was resolved and approved contains no link. Opened here it still means what was
approved: a link that appeared in it since fails with ELOOP. Linux opens a path in one call
(openat2); on other systems, and where that call is forbidden, each directory is opened separately.
Filesystem.real_path resolves links before approval.

Invariant: what is read, created, replaced or removed at a ConfinedPath is below its root.
"""

import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from perdure.core.files.paths import is_within
from perdure.schema.value import Value

OpenDirectory = Callable[[str, Sequence[str]], int]
"""Opens the directory `names` below a root. Raises OSError, with ELOOP for a link."""

_SEARCH: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY: Final = _SEARCH | os.O_DIRECTORY | os.O_CLOEXEC
_OPENAT2: Final = 437  # on every architecture
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_HERE: Final = -100  # AT_FDCWD


class ConfinedPath(Value):
    """A name in an open directory; without a directory, a path that is not confined."""

    directory: int | None
    name: str

    def open(self, flags: int, mode: int = 0o777) -> int:
        confined = 0 if self.directory is None else os.O_NOFOLLOW
        return os.open(self.name, flags | confined | os.O_CLOEXEC, mode, dir_fd=self.directory)

    def stat(self) -> os.stat_result:
        if self.directory is None:
            return os.stat(self.name)
        status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise _is_link(self.name)
        return status

    def remove(self) -> None:
        os.unlink(self.name, dir_fd=self.directory)

    def replace_with(self, other: "ConfinedPath") -> None:
        """Rename `other` to this name. An existing link is replaced, not followed."""
        os.replace(other.name, self.name, src_dir_fd=other.directory, dst_dir_fd=self.directory)

    def sibling(self, name: str) -> "ConfinedPath":
        """Another name in the same directory."""
        parent = "" if self.directory is not None else os.path.dirname(self.name)
        return ConfinedPath(self.directory, os.path.join(parent, name))


@contextmanager
def open_confined(root: str, path: str, open_directory: OpenDirectory) -> Generator[ConfinedPath]:
    """The ConfinedPath of `path` below `root` for the scope. Both are canonical."""
    *above, name = _names(root, path) or (".",)
    directory = open_directory(root, above)
    try:
        yield ConfinedPath(directory, name)
    finally:
        os.close(directory)


def make_directories(root: str, path: str, open_directory: OpenDirectory) -> None:
    """Create the directory `path` below `root`, and missing ones above it."""
    names = _names(root, path)
    current = open_directory(root, ())
    try:
        for name in names:
            current = _close_for(current, _open_or_make(current, name))
    finally:
        os.close(current)


def open_below(root: str, names: Sequence[str]) -> int:
    """An OpenDirectory that finds out at its first call what this machine supports."""
    return choose_opener()(root, names)


@functools.cache
def choose_opener() -> OpenDirectory:
    """The best OpenDirectory that this machine supports."""
    return make_kernel_opener() or open_step_by_step


def open_step_by_step(root: str, names: Sequence[str]) -> int:
    """An OpenDirectory that opens each directory relative to the one before."""
    if _SEARCH != os.O_RDONLY:
        # Begin at `/`. Without O_PATH that needs read permission for all directories above the
        # root, so there it begins at the root.
        root, names = "/", (*root.strip("/").split("/"), *names)
    current = os.open(root, _DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in filter(None, names):
            current = _close_for(current, _open_child(current, name))
    except OSError:
        os.close(current)
        raise
    return current


def make_kernel_opener() -> OpenDirectory | None:
    """An OpenDirectory that uses openat2; None if the call is not available."""
    openat2 = _openat2()
    if openat2 is None:
        return None
    resolve = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS

    def open_directory(root: str, names: Sequence[str]) -> int:
        pinned = openat2(_HERE, root, resolve)
        if not names:
            return pinned
        try:
            return openat2(pinned, "/".join(names), resolve | _RESOLVE_BENEATH)
        finally:
            os.close(pinned)

    return open_directory


def _openat2() -> Callable[[int, str, int], int] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    class How(ctypes.Structure):
        _fields_ = (
            ("flags", ctypes.c_uint64),
            ("mode", ctypes.c_uint64),
            ("resolve", ctypes.c_uint64),
        )

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long

    def call(directory: int, path: str, resolve: int) -> int:
        how = How(_DIRECTORY, 0, resolve)
        opened: int = syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(directory),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if opened < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        return opened

    try:
        os.close(call(_HERE, "/", _RESOLVE_NO_SYMLINKS))
    except OSError:
        # Older kernels lack the call, and some containers forbid it.
        return None
    return call


def _names(root: str, path: str) -> tuple[str, ...]:
    if not is_within(path, root) or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EXDEV, "not below the directory that was pinned", path)
    return tuple(filter(None, path[len(root) :].split("/")))


def _open_or_make(directory: int, name: str) -> int:
    with suppress(FileNotFoundError):
        return _open_child(directory, name)
    # Another process may be first; opening it shows whether it is a directory.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    return _open_child(directory, name)


def _open_child(directory: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError as error:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise _is_link(name) from error
        raise


def _close_for(old: int, new: int) -> int:
    """Close `old` and return `new`."""
    os.close(old)
    return new


def _is_link(name: str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
