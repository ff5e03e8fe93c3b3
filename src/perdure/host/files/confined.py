"""Places below a pinned directory, reached without following a single link.

A path that was resolved and approved has no link in it. Reached from here it still means what was
approved: a link anywhere in it, put there a moment ago, ends the walk with ELOOP. Linux walks in
one call (openat2); elsewhere, and where that call is forbidden, every step is opened by itself.
Resolving the links that may be followed comes before, in Filesystem.real_path.

Invariant: what is read, made, replaced or removed at a Place lies below its root.
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
"""Opens the directory that lies `names` below a root. Raises OSError, ELOOP where a link is met."""

_SEARCH: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_DIRECTORY: Final = _SEARCH | os.O_DIRECTORY | os.O_CLOEXEC
_OPENAT2: Final = 437  # on every architecture
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_HERE: Final = -100  # AT_FDCWD


class ConfinedPath(Value):
    """A name in an open directory; or, without one, a path that is taken as it stands."""

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
        """`other` takes this name, whatever had it. A link is replaced, not followed."""
        os.replace(other.name, self.name, src_dir_fd=other.directory, dst_dir_fd=self.directory)

    def beside(self, name: str) -> "ConfinedPath":
        """Another name in the same directory."""
        where = "" if self.directory is not None else os.path.dirname(self.name)
        return ConfinedPath(self.directory, os.path.join(where, name))


@contextmanager
def place(root: str, path: str, walk: OpenDirectory) -> Generator[ConfinedPath]:
    """Where `path` is below `root`, while the scope is open. Both are canonical."""
    *above, name = _names(root, path) or (".",)
    directory = walk(root, above)
    try:
        yield ConfinedPath(directory, name)
    finally:
        os.close(directory)


def make_directories(root: str, path: str, walk: OpenDirectory) -> None:
    """Make `path` and what is missing above it, below `root`."""
    names = _names(root, path)
    here = walk(root, ())
    try:
        for name in names:
            here = _replaced(here, _made(here, name))
    finally:
        os.close(here)


def walk(root: str, names: Sequence[str]) -> int:
    """An OpenDirectory that tries at its first use which walk this machine is best at."""
    return best_walk()(root, names)


@functools.cache
def best_walk() -> OpenDirectory:
    """The walk that this machine is best at."""
    return one_call() or step_by_step


def step_by_step(root: str, names: Sequence[str]) -> int:
    """A Walk that opens each directory from the one before."""
    if _SEARCH != os.O_RDONLY:
        # From the very top. Where a directory must be readable to be opened, those above the root
        # may not be, and the walk can only begin there.
        root, names = "/", (*root.strip("/").split("/"), *names)
    here = os.open(root, _DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in filter(None, names):
            here = _replaced(here, _step(here, name))
    except OSError:
        os.close(here)
        raise
    return here


def one_call() -> OpenDirectory | None:
    """A Walk that the kernel does by itself; None where there is no such call."""
    openat2 = _openat2()
    if openat2 is None:
        return None
    resolve = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS

    def walk(root: str, names: Sequence[str]) -> int:
        pinned = openat2(_HERE, root, resolve)
        if not names:
            return pinned
        try:
            return openat2(pinned, "/".join(names), resolve | _RESOLVE_BENEATH)
        finally:
            os.close(pinned)

    return walk


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
        # An older kernel does not know the call, and some containers forbid it.
        return None
    return call


def _names(root: str, path: str) -> tuple[str, ...]:
    if not is_within(path, root) or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EXDEV, "not below the directory that was pinned", path)
    return tuple(filter(None, path[len(root) :].split("/")))


def _made(directory: int, name: str) -> int:
    with suppress(FileNotFoundError):
        return _step(directory, name)
    # Somebody else may be quicker; whether it is a directory then shows in the next step.
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)
    return _step(directory, name)


def _step(directory: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError as error:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            raise _is_link(name) from error
        raise


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


def _is_link(name: str) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
