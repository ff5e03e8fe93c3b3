"""The local disk behind the Filesystem port, all of it or the part below one directory.

Small reads run inline: a thread would cost more than the read. Anything larger, and anything that
waits for the disk, runs in a thread. Who may touch what is decided in tools.files.path_access; how
a place below a pinned directory is reached, in host.files.confined.

Invariant: a write that has begun is finished before its caller learns of a cancellation, and a
reader sees the old file or the new one, never a part.
"""

import asyncio
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, TypeVar

from perdure.core.limits import FILE_INLINE_BYTES_MAX
from perdure.host.files import confined
from perdure.host.files.confined import ConfinedPath, OpenDirectory
from perdure.ports import FileStat

T = TypeVar("T")

# Not blocking, so that a named pipe is refused instead of waited for.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK
_LIST_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_ABSENT: Final = FileStat(is_directory=False, is_file=False, size=0, mode=0, modified_ns=0)


class LocalFilesystem:
    """Adapter of ports.Filesystem. With a root it is what `confined_to` gives."""

    def __init__(
        self,
        *,
        root: str | None = None,
        walk: OpenDirectory | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._root = root
        self._walk = walk or confined.walk
        self._numbers = numbers or itertools.count(1)

    def confined_to(self, root: str) -> "LocalFilesystem":
        return LocalFilesystem(root=root, walk=self._walk, numbers=self._numbers)

    async def stat(self, path: str) -> FileStat:
        with self._at(path) as at:
            return _described(at.stat())

    async def are_files(self, paths: Sequence[str]) -> Sequence[bool]:
        groups = itertools.groupby(paths, key=os.path.dirname)
        return [there for _, group in groups for there in self._are_files(tuple(group))]

    async def real_path(self, path: str) -> str:
        return _resolved(path)

    async def read(self, path: str, *, offset: int = 0, bytes_max: int | None = None) -> bytes:
        with self._at(path) as at:
            descriptor = at.open(_READ_FLAGS)
        try:
            left = _size_of(descriptor, path) - offset
            wanted = left if bytes_max is None else min(left, bytes_max)
            if wanted <= FILE_INLINE_BYTES_MAX:
                return _read(descriptor, offset=offset, bytes_max=bytes_max)
            # Waited for to the end, so that the descriptor is not closed under the reader.
            return await _finish_in_thread(
                lambda: _read(descriptor, offset=offset, bytes_max=bytes_max)
            )
        finally:
            os.close(descriptor)

    async def list(self, path: str) -> Sequence[tuple[str, FileStat]]:
        return await asyncio.to_thread(self._children, path)

    async def write_atomic(self, path: str, data: bytes) -> None:
        await _finish_in_thread(lambda: self._replace(path, data))

    async def create_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        if len(data) <= FILE_INLINE_BYTES_MAX:
            self._create(path, data, mode=mode)
        else:
            await _finish_in_thread(lambda: self._create(path, data, mode=mode))

    async def append(self, path: str, data: bytes) -> None:
        await _finish_in_thread(lambda: self._append(path, data))

    async def make_directories(self, path: str) -> None:
        if self._root is None:
            os.makedirs(path, exist_ok=True)
        else:
            confined.make_directories(self._root, path, self._walk)

    async def remove(self, path: str) -> None:
        with self._at(path) as at:
            at.remove()

    def _at(self, path: str) -> AbstractContextManager[ConfinedPath]:
        if self._root is None:
            return nullcontext(ConfinedPath(None, path))
        return confined.place(self._root, path, self._walk)

    def _are_files(self, paths: Sequence[str]) -> Sequence[bool]:
        """For paths in one directory, which is walked to once."""
        try:
            with self._at(paths[0]) as at:
                return [_is_file(at.beside(os.path.basename(path))) for path in paths]
        except OSError:
            return [False] * len(paths)

    def _children(self, path: str) -> Sequence[tuple[str, FileStat]]:
        with self._at(path) as at:
            descriptor = at.open(_LIST_FLAGS)
        try:
            with os.scandir(descriptor) as entries:
                found = [(entry.name, _entry_stat(entry)) for entry in entries]
        finally:
            os.close(descriptor)
        found.sort(key=lambda item: item[0])
        return found

    def _create(self, path: str, data: bytes, *, mode: int) -> None:
        with self._at(path) as at:
            _fill(at, at.open(_CREATE_FLAGS, mode), data)

    def _append(self, path: str, data: bytes) -> None:
        with self._at(path) as at:
            descriptor = at.open(os.O_WRONLY | os.O_APPEND)
        try:
            _write(descriptor, data)
        finally:
            os.close(descriptor)

    def _replace(self, path: str, data: bytes) -> None:
        with self._at(_resolved(path) if self._root is None else path) as at:
            like = _existing(at)
            temporary, descriptor = self._temporary(at)
            _fill(temporary, descriptor, data, like=like, durable=True)
            try:
                at.replace_with(temporary)
            except OSError:
                temporary.remove()
                raise

    def _temporary(self, at: ConfinedPath) -> tuple[ConfinedPath, int]:
        """A new file beside `at`, open for writing."""
        while True:
            beside = at.beside(f".perdure-{os.getpid()}-{next(self._numbers)}.tmp")
            # A dead process that had our number may have left one behind.
            with suppress(FileExistsError):
                return beside, beside.open(_CREATE_FLAGS, 0o666)


async def _finish_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread. A cancellation is raised once the work is done, never before."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        future.exception()  # Looked at, so that asyncio does not report it as lost.
        raise cancelled
    return future.result()


def _resolved(path: str) -> str:
    return os.path.realpath(path)


def _size_of(descriptor: int, path: str) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return status.st_size


def _read(descriptor: int, *, offset: int, bytes_max: int | None) -> bytes:
    """Up to the end or the bound, whatever the size said: the file may be growing."""
    pieces: list[bytes] = []
    left = bytes_max
    while left is None or left > 0:
        piece = os.pread(descriptor, _step(left), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)


def _step(left: int | None) -> int:
    step = 1024 * 1024
    return step if left is None else min(left, step)


def _entry_stat(entry: os.DirEntry[str]) -> FileStat:
    try:
        return _described(entry.stat())
    except OSError:
        # A link to nowhere, or a file removed since it was listed: a name, and no more.
        return _ABSENT


def _described(status: os.stat_result) -> FileStat:
    return FileStat(
        is_directory=stat.S_ISDIR(status.st_mode),
        is_file=stat.S_ISREG(status.st_mode),
        size=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
        modified_ns=status.st_mtime_ns,
    )


def _is_file(at: ConfinedPath) -> bool:
    try:
        return stat.S_ISREG(at.stat().st_mode)
    except (OSError, ValueError):
        # A name with a NUL in it is no file's name.
        return False


def _existing(at: ConfinedPath) -> os.stat_result | None:
    try:
        return at.stat()
    except FileNotFoundError:
        return None


def _fill(
    at: ConfinedPath,
    descriptor: int,
    data: bytes,
    *,
    like: os.stat_result | None = None,
    durable: bool = False,
) -> None:
    """Put all of `data` into the new file, or leave nothing behind. Closes the descriptor."""
    try:
        if like is not None:
            _take_after(descriptor, like)
        _write(descriptor, data)
        if durable:
            os.fsync(descriptor)
    except OSError:
        at.remove()
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_after(descriptor: int, like: os.stat_result) -> None:
    # Only a privileged process may give files away; for the others the owner is already right
    # or cannot be. The mode comes last because a change of owner clears its special bits.
    with suppress(PermissionError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
