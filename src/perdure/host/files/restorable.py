"""Reads the state of single files, keeps their content, and restores earlier states.

Every path is opened below a pinned directory without following a link (host.files.confined), so a
path that became a link is `other` and never written through. core.files.revert decides whether a
file may be restored. Methods block and must run on a thread.

Invariant: a path is left in the state it was found in, or in the wanted one.
"""

import errno
import itertools
import os
import posixpath
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from perdure.core import limits
from perdure.core.files import file_state
from perdure.core.files.file_state import ABSENT, OTHER, UNKNOWN, FileState
from perdure.core.files.revert import Move
from perdure.host.files import confined
from perdure.host.files.confined import ConfinedPath, OpenDirectory
from perdure.host.files.content_store import ContentStore

_READ: Final = os.O_RDONLY | os.O_NONBLOCK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NOT_CONFINED: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EXDEV})


class FoundChangedError(Exception):
    """The path has changed since it was found, and was left alone."""


class RestorableFiles:
    def __init__(
        self,
        contents: ContentStore,
        *,
        open_directory: OpenDirectory | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._contents = contents
        self._open_directory = open_directory or confined.open_below
        self._numbers = numbers or itertools.count(1)

    def read_state(
        self, root: str, path: str, *, bytes_max: int, keep: bool = True, durable: bool = False
    ) -> FileState:
        """The current state of a path; with `keep`, its content is stored. Raises OSError."""
        try:
            with confined.open_confined(root, path, self._open_directory) as target:
                return self._state(target, bytes_max=bytes_max, keep=keep, durable=durable)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            if error.errno in _NOT_CONFINED:
                return OTHER
            raise

    def put(self, move: Move) -> None:
        """Bring a path into the wanted state. Raises FoundChangedError or OSError."""
        wanted = move.wanted
        data = self._contents.read(wanted.digest) if wanted.has_content else b""
        if wanted.kind != "absent":
            confined.make_directories(move.root, posixpath.dirname(move.path), self._open_directory)
        late = self._replace(move, data)
        if late is not None:
            # Another program wrote to the file after the look. What it wrote is put back.
            self.put(
                Move(
                    root=move.root,
                    path=move.path,
                    base=move.base,
                    found=wanted,
                    wanted=late,
                )
            )
            raise FoundChangedError(move.path)

    def _replace(self, move: Move, data: bytes) -> FileState | None:
        """The state that a replaced file came to after it was found, if another program wrote it.

        A program that opened the file before and writes to it later is not seen.
        """
        wanted = move.wanted
        with confined.open_confined(move.root, move.path, self._open_directory) as target:
            new = None if wanted.kind == "absent" else self._create_temporary(target, wanted, data)
            try:
                with _opened(target) as old:
                    self._require_found(target, move.found)
                    if new is not None:
                        target.replace_with(new)
                        new = None
                    elif move.found.kind != "absent":
                        target.remove()
                    return self._late(old, move.found)
            except (OSError, FoundChangedError):
                if new is not None:
                    new.remove()
                raise

    def _late(self, old: BinaryIO | None, found: FileState) -> FileState | None:
        if old is None or found.kind != "file":
            return None
        data = old.read()
        if file_state.digest_of(data) == found.digest:
            return None
        return FileState("file", self._contents.keep(data), found.mode)

    def _state(
        self, target: ConfinedPath, *, bytes_max: int, keep: bool, durable: bool
    ) -> FileState:
        status = os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return FileState("link", self._digest(_target(target), keep=keep, durable=durable))
        if not stat.S_ISREG(status.st_mode):
            return OTHER
        if status.st_size > bytes_max:
            return UNKNOWN
        data = _read(target, bytes_max + 1)
        if len(data) > bytes_max:
            return UNKNOWN
        digest = self._digest(data, keep=keep, durable=durable)
        return FileState("file", digest, stat.S_IMODE(status.st_mode))

    def _digest(self, data: bytes, *, keep: bool, durable: bool) -> str:
        if keep:
            return self._contents.keep(data, durable=durable)
        return file_state.digest_of(data)

    def _require_found(self, target: ConfinedPath, found: FileState) -> None:
        # A larger file never has a state that can be restored.
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        try:
            now = self._state(target, bytes_max=bytes_max, keep=False, durable=False)
        except FileNotFoundError:
            now = ABSENT
        if not now.same(found):
            raise FoundChangedError(target.name)

    def _create_temporary(
        self, target: ConfinedPath, wanted: FileState, data: bytes
    ) -> ConfinedPath:
        """Create the wanted file under a temporary name in the same directory."""
        while True:
            temporary = target.sibling(f".perdure-{os.getpid()}-{next(self._numbers)}.tmp")
            with suppress(FileExistsError):
                if wanted.kind == "link":
                    os.symlink(os.fsdecode(data), temporary.name, dir_fd=temporary.directory)
                else:
                    _fill(temporary, wanted, data, like=_existing(target))
                return temporary


def _target(target: ConfinedPath) -> bytes:
    return os.fsencode(os.readlink(target.name, dir_fd=target.directory))


def _read(target: ConfinedPath, bytes_max: int) -> bytes:
    with open(target.open(_READ), "rb") as file:
        return file.read(bytes_max)


@contextmanager
def _opened(target: ConfinedPath) -> Generator[BinaryIO | None]:
    """The file itself, which stays readable when its name is given to another one."""
    try:
        handle = target.open(_READ)
    except OSError:
        # There is none, or it is no file: the look at what was found says so.
        yield None
        return
    with open(handle, "rb", buffering=0) as file:
        yield file


def _existing(target: ConfinedPath) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(target.name, dir_fd=target.directory, follow_symlinks=False)
    return None


def _fill(
    target: ConfinedPath, wanted: FileState, data: bytes, *, like: os.stat_result | None
) -> None:
    """Create a file with this content, synced to disk; on failure none is left."""
    descriptor = target.open(_CREATE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            # Only a privileged process may change the owner; for others it is right already.
            with suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, 0o644 if wanted.mode is None else wanted.mode)
        os.fsync(descriptor)
    except OSError:
        target.remove()
        raise
    finally:
        os.close(descriptor)
