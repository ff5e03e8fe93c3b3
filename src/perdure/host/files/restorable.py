"""Single files that are looked at, kept, and put back into an earlier state.

Every path is reached below a pinned directory without following a link (host.files.confined), so a
path that was swapped for a link since is `other`, and never written through. Whether a file may be
put back is decided in core.files.revert. Methods block and are for threads.

Invariant: a path is left in the state it was found in, or in the one that was wanted.
"""

import errno
import itertools
import os
import posixpath
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.core.files import file_state
from perdure.core.files.file_state import ABSENT, OTHER, UNKNOWN, FileState
from perdure.core.files.revert import Move
from perdure.host.files import confined
from perdure.host.files.confined import ConfinedPath, OpenDirectory
from perdure.host.files.content_store import ContentStore

_READ: Final = os.O_RDONLY | os.O_NONBLOCK
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NOT_A_PLACE: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EXDEV})


class FoundChangedError(Exception):
    """The path is no longer in the state that it was found in: it was left alone."""


class RestorableFiles:
    def __init__(
        self,
        contents: ContentStore,
        *,
        walk: OpenDirectory | None = None,
        numbers: Iterator[int] | None = None,
    ) -> None:
        self._contents = contents
        self._walk = walk or confined.walk
        self._numbers = numbers or itertools.count(1)

    def look(
        self, root: str, path: str, *, bytes_max: int, keep: bool = True, durable: bool = False
    ) -> FileState:
        """What is there now, and with `keep` its content for later. Raises OSError."""
        try:
            with confined.place(root, path, self._walk) as at:
                return self._state(at, bytes_max=bytes_max, keep=keep, durable=durable)
        except FileNotFoundError:
            return ABSENT
        except OSError as error:
            if error.errno in _NOT_A_PLACE:
                return OTHER
            raise

    def put(self, move: Move) -> None:
        """Move a path to the wanted state. Raises FoundChangedError, or OSError as it comes."""
        wanted = move.wanted
        data = self._contents.read(wanted.digest) if wanted.has_content else b""
        if wanted.kind != "absent":
            confined.make_directories(move.root, posixpath.dirname(move.path), self._walk)
        with confined.place(move.root, move.path, self._walk) as at:
            made = None if wanted.kind == "absent" else self._made(at, wanted, data)
            try:
                self._require_found(at, move.found)
                if made is not None:
                    at.replace_with(made)
                elif move.found.kind != "absent":
                    at.remove()
            except (OSError, FoundChangedError):
                if made is not None:
                    made.remove()
                raise

    def _state(self, at: ConfinedPath, *, bytes_max: int, keep: bool, durable: bool) -> FileState:
        status = os.stat(at.name, dir_fd=at.directory, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return FileState("link", self._digest(_target(at), keep=keep, durable=durable))
        if not stat.S_ISREG(status.st_mode):
            return OTHER
        if status.st_size > bytes_max:
            return UNKNOWN
        data = _read(at, bytes_max + 1)
        if len(data) > bytes_max:
            return UNKNOWN
        digest = self._digest(data, keep=keep, durable=durable)
        return FileState("file", digest, stat.S_IMODE(status.st_mode))

    def _digest(self, data: bytes, *, keep: bool, durable: bool) -> str:
        if keep:
            return self._contents.keep(data, durable=durable)
        return file_state.digest_of(data)

    def _require_found(self, at: ConfinedPath, found: FileState) -> None:
        # What is larger was never found in a state that can be moved.
        bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
        try:
            now = self._state(at, bytes_max=bytes_max, keep=False, durable=False)
        except FileNotFoundError:
            now = ABSENT
        if not now.same(found):
            raise FoundChangedError(at.name)

    def _made(self, at: ConfinedPath, wanted: FileState, data: bytes) -> ConfinedPath:
        """The wanted file beside its place, under a name of our own."""
        while True:
            beside = at.beside(f".perdure-{os.getpid()}-{next(self._numbers)}.tmp")
            with suppress(FileExistsError):
                if wanted.kind == "link":
                    os.symlink(os.fsdecode(data), beside.name, dir_fd=beside.directory)
                else:
                    _fill(beside, wanted, data, like=_existing(at))
                return beside


def _target(at: ConfinedPath) -> bytes:
    return os.fsencode(os.readlink(at.name, dir_fd=at.directory))


def _read(at: ConfinedPath, bytes_max: int) -> bytes:
    with open(at.open(_READ), "rb") as file:
        return file.read(bytes_max)


def _existing(at: ConfinedPath) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(at.name, dir_fd=at.directory, follow_symlinks=False)
    return None


def _fill(at: ConfinedPath, wanted: FileState, data: bytes, *, like: os.stat_result | None) -> None:
    """A new file with this content, on the disk; or nothing."""
    descriptor = at.open(_CREATE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if like is not None:
            # Only a privileged process may give files away; for others the owner is right already.
            with suppress(PermissionError):
                os.fchown(descriptor, like.st_uid, like.st_gid)
        os.fchmod(descriptor, 0o644 if wanted.mode is None else wanted.mode)
        os.fsync(descriptor)
    except OSError:
        at.remove()
        raise
    finally:
        os.close(descriptor)
