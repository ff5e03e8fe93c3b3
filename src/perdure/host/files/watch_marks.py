"""Marks of the directories that are watched while commands may change them, for all processes.

A command does not say what it changes. If commands of two Sessions run at once in one directory, in
one process or in two, a change may be of either. What a file tool or a revert of another Session
writes meanwhile is not the command's. So each watch has a file, its mark, in which other
Sessions note what they change meanwhile. A mark of a dead process is removed by the next look.

Invariant: of two watches that overlap in time, the later one finds the mark of the earlier. A mark
that was lost, or that could not be written, counts as a watch beside which anything happened.
"""

import itertools
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from perdure.core.files.paths import is_within
from perdure.ports import Processes
from perdure.schema.ids import SessionID
from perdure.schema.value import Value

_END: Final = b"\0"
"""Ends each field of a mark: the Session, the directory, then what was noted. No path has it."""
_SHARED: Final = b""
"""Noted by a command of another Session."""
_BYTES_MAX: Final = 1_000_000
"""A mark with more notes counts as shared."""


class Mark(Value):
    name: str
    session_id: SessionID
    root: str


class Noted(Value):
    """What happened beside a watch."""

    shared: bool
    """Whether a command of another Session ran meanwhile."""
    paths: frozenset[str] = frozenset()
    """What file tools and reverts of other Sessions changed meanwhile."""


class WatchMarks:
    def __init__(self, directory: str, processes: Processes) -> None:
        self._directory = directory
        self._processes = processes
        self._numbers = itertools.count(1)
        self._known: dict[str, Mark] = {}

    def begin(self, session_id: SessionID, root: str) -> Mark:
        """Mark a directory. It shares its changes with each watch of another Session there is.

        Raises OSError.
        """
        mark = Mark(f"{self._processes.me}.{next(self._numbers)}", session_id, root)
        with suppress(FileExistsError):
            # Not the directories above it: a data directory that is gone is not made anew.
            os.mkdir(self._directory, 0o700)
        try:
            self._create(mark)
            # Looked for only now: a watch that begins after this look finds our mark.
            for other in self._others(session_id):
                if is_within(other.root, root) or is_within(root, other.root):
                    self._note(other, _SHARED)
                    self._note(mark, _SHARED)
        except OSError:
            self._remove(mark.name)
            raise
        return mark

    def note_write(self, session_id: SessionID, path: str) -> None:
        """Note that a Session is about to change a file by other means than a command."""
        for other in self._others(session_id):
            if is_within(path, other.root):
                self._note(other, os.fsencode(path))

    def end(self, mark: Mark) -> Noted:
        """Remove the mark, and return what was noted."""
        try:
            with open(self._path(mark.name), "rb") as file:
                data = file.read(_BYTES_MAX + 1)
        except OSError:
            return Noted(shared=True)
        finally:
            self._remove(mark.name)
        _, _, *noted = data.split(_END)[:-1]
        shared = _SHARED in noted or len(data) > _BYTES_MAX
        return Noted(shared, frozenset(os.fsdecode(path) for path in noted if path))

    def _create(self, mark: Mark) -> None:
        """A mark is found only when it is complete."""
        hidden = self._path(f".{mark.name}")
        fields = (os.fsencode(mark.session_id), os.fsencode(mark.root), b"")
        with open(hidden, "xb") as file:
            file.write(_END.join(fields))
        os.rename(hidden, self._path(mark.name))

    def _others(self, session_id: SessionID) -> Iterator[Mark]:
        """The watches of other Sessions, in all living processes."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return
        self._known = {name: mark for name, mark in self._known.items() if name in names}
        for name in names:
            process = name.removeprefix(".").rpartition(".")[0]
            if not process or not self._processes.alive(process):
                self._remove(name)
                continue
            mark = None if name.startswith(".") else self._read(name)
            if mark is not None and mark.session_id != session_id:
                yield mark

    def _read(self, name: str) -> Mark | None:
        """None when the watch has ended."""
        known = self._known.get(name)
        if known is None:
            try:
                with open(self._path(name), "rb") as file:
                    session_id, root, *_ = file.read(_BYTES_MAX).split(_END)
            except FileNotFoundError:
                return None
            known = Mark(name, SessionID(os.fsdecode(session_id)), os.fsdecode(root))
            self._known[name] = known
        return known

    def _note(self, mark: Mark, what: bytes) -> None:
        try:
            handle = os.open(self._path(mark.name), os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            # The watch has ended.
            return
        try:
            if os.write(handle, what + _END) != len(what) + 1:
                self._remove(mark.name)
        except OSError:
            # The disk is full. Without its mark, the watch counts as shared.
            self._remove(mark.name)
        finally:
            os.close(handle)

    def _remove(self, name: str) -> None:
        self._known.pop(name, None)
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)
