"""The local disk behind the Filesystem port: all of it, or confined to one directory.

Small reads run inline, because a thread would cost more; larger ones, and writes that wait for the
disk, run in a thread. tools.files.path_access decides which paths may be used;
host.files.confined opens paths below a pinned directory.

Invariant: a write that has begun is finished before its caller is cancelled, and a reader sees the
old file or the new one, never a part.
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

# Non-blocking, so that a named pipe is refused instead of blocking.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK
_LIST_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_ABSENT: Final = FileStat(is_directory=False, is_file=False, size=0, mode=0, modified_ns=0)


class LocalFilesystem:
    """Adapter of ports.Filesystem; with `root`, confined to that directory."""

    def __init__(
        self,
        *,
        root: str | None = None,
        open_directory: OpenDirectory | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._root = root
        self._open_directory = open_directory or confined.open_below
        self._numbers = numbers or itertools.count(1)

    def confined_to(self, root: str) -> "LocalFilesystem":
        return LocalFilesystem(
            root=root, open_directory=self._open_directory, numbers=self._numbers
        )

    async def stat(self, path: str) -> FileStat:
        with self._open_path(path) as target:
            return _file_stat(target.stat())

    async def are_files(self, paths: Sequence[str]) -> Sequence[bool]:
        groups = itertools.groupby(paths, key=os.path.dirname)
        return [is_file for _, group in groups for is_file in self._are_files(tuple(group))]

    async def real_path(self, path: str) -> str:
        return _resolve_links(path)

    async def read(self, path: str, *, offset: int = 0, bytes_max: int | None = None) -> bytes:
        with self._open_path(path) as target:
            descriptor = target.open(_READ_FLAGS)
        try:
            remaining = _size_of(descriptor, path) - offset
            wanted = remaining if bytes_max is None else min(remaining, bytes_max)
            if wanted <= FILE_INLINE_BYTES_MAX:
                return _read(descriptor, offset=offset, bytes_max=bytes_max)
            # Not cancellable, so that the descriptor is not closed while the thread reads.
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
            confined.make_directories(self._root, path, self._open_directory)

    async def remove(self, path: str) -> None:
        with self._open_path(path) as target:
            target.remove()

    def _open_path(self, path: str) -> AbstractContextManager[ConfinedPath]:
        if self._root is None:
            return nullcontext(ConfinedPath(None, path))
        return confined.open_confined(self._root, path, self._open_directory)

    def _are_files(self, paths: Sequence[str]) -> Sequence[bool]:
        """For paths in one directory, which is opened once."""
        try:
            with self._open_path(paths[0]) as target:
                return [_is_file(target.sibling(os.path.basename(path))) for path in paths]
        except OSError:
            return [False] * len(paths)

    def _children(self, path: str) -> Sequence[tuple[str, FileStat]]:
        with self._open_path(path) as target:
            descriptor = target.open(_LIST_FLAGS)
        try:
            with os.scandir(descriptor) as entries:
                found = [(entry.name, _entry_stat(entry)) for entry in entries]
        finally:
            os.close(descriptor)
        found.sort(key=lambda item: item[0])
        return found

    def _create(self, path: str, data: bytes, *, mode: int) -> None:
        with self._open_path(path) as target:
            _fill(target, target.open(_CREATE_FLAGS, mode), data)

    def _append(self, path: str, data: bytes) -> None:
        with self._open_path(path) as target:
            descriptor = target.open(os.O_WRONLY | os.O_APPEND)
        try:
            _write(descriptor, data)
        finally:
            os.close(descriptor)

    def _replace(self, path: str, data: bytes) -> None:
        with self._open_path(_resolve_links(path) if self._root is None else path) as target:
            like = _existing(target)
            temporary, descriptor = self._temporary(target)
            _fill(temporary, descriptor, data, like=like, durable=True)
            try:
                target.replace_with(temporary)
            except OSError:
                temporary.remove()
                raise

    def _temporary(self, target: ConfinedPath) -> tuple[ConfinedPath, int]:
        """Create a temporary file in the directory of `target`, open for writing."""
        while True:
            temporary = target.sibling(f".perdure-{os.getpid()}-{next(self._numbers)}.tmp")
            # A dead process with the same pid may have left one behind.
            with suppress(FileExistsError):
                return temporary, temporary.open(_CREATE_FLAGS, 0o666)


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
        future.exception()  # Retrieved, so that asyncio does not report it.
        raise cancelled
    return future.result()


def _resolve_links(path: str) -> str:
    return os.path.realpath(path)


def _size_of(descriptor: int, path: str) -> int:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return status.st_size


def _read(descriptor: int, *, offset: int, bytes_max: int | None) -> bytes:
    """Read to the end or the bound; the file may grow meanwhile."""
    pieces: list[bytes] = []
    remaining = bytes_max
    while remaining is None or remaining > 0:
        piece = os.pread(descriptor, _chunk_size(remaining), offset)
        if not piece:
            break
        pieces.append(piece)
        offset += len(piece)
        remaining = None if remaining is None else remaining - len(piece)
    return b"".join(pieces)


def _chunk_size(remaining: int | None) -> int:
    chunk = 1024 * 1024
    return chunk if remaining is None else min(remaining, chunk)


def _entry_stat(entry: os.DirEntry[str]) -> FileStat:
    try:
        return _file_stat(entry.stat())
    except OSError:
        # A broken link, or a file removed since it was listed.
        return _ABSENT


def _file_stat(status: os.stat_result) -> FileStat:
    return FileStat(
        is_directory=stat.S_ISDIR(status.st_mode),
        is_file=stat.S_ISREG(status.st_mode),
        size=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
        modified_ns=status.st_mtime_ns,
    )


def _is_file(target: ConfinedPath) -> bool:
    try:
        return stat.S_ISREG(target.stat().st_mode)
    except (OSError, ValueError):
        # ValueError: the name contains a NUL.
        return False


def _existing(target: ConfinedPath) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _fill(
    target: ConfinedPath,
    descriptor: int,
    data: bytes,
    *,
    like: os.stat_result | None = None,
    durable: bool = False,
) -> None:
    """Write `data` to the new file, or remove it on failure. Closes the descriptor."""
    try:
        if like is not None:
            _copy_owner_and_mode(descriptor, like)
        _write(descriptor, data)
        if durable:
            os.fsync(descriptor)
    except OSError:
        target.remove()
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _copy_owner_and_mode(descriptor: int, like: os.stat_result) -> None:
    # Only a privileged process may change the owner; others keep theirs. The mode comes last
    # because a change of owner clears its special bits.
    with suppress(PermissionError):
        os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
