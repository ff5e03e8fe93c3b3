"""The disk as SQLite uses it: what was written, synced and removed, in order, and faults on demand.

While a RecordingVfs is entered it is SQLite's default VFS: a database below its root that is opened
meanwhile runs on it, and no code needs to know. Beneath it everything is passed to the real files.
What a power loss would leave of a record is decided in tests.harness.faults.disk_image; nothing is
lost here.

A fault is raised, not returned: apsw knows no other way. So a COMMIT whose checkpoint fails after
it is done is reported as failed here, where SQLite itself would say nothing.
"""

import errno
import os
from typing import Final, Literal, Protocol, Self, cast

import apsw

from perdure.schema.value import State, Value

_NAME: Final = "perdure-recording"
_BASE: Final = "unix"

Action = Literal["read", "write", "sync", "truncate", "open"]


class Write(Value):
    file: str
    offset: int
    data: bytes


class Truncate(Value):
    file: str
    size: int


class Sync(Value):
    file: str


class FailedSync(Value):
    """Whatever was not synced before may be lost now, even if the next sync succeeds."""

    file: str


class Create(Value):
    """Opened, and made if it was not there."""

    file: str


class Delete(Value):
    file: str


class Mark(Value):
    """What a client was told at this moment."""

    text: str


Operation = Write | Truncate | Sync | FailedSync | Create | Delete | Mark


class Fault(State):
    """The `number`-th such action fails, and each one after it too if the fault `lasts`."""

    action: Action
    number: int
    code: int
    lasts: bool = False
    seen: int = 0
    met: bool = False

    def strikes(self, action: Action) -> bool:
        if action != self.action:
            return False
        self.seen += 1
        strikes = self.seen == self.number or (self.lasts and self.seen > self.number)
        self.met = self.met or strikes
        return strikes


class RecordingVfs(apsw.VFS):
    """Records the files whose path begins with `root`; names in the record begin after it."""

    def __init__(self, root: str) -> None:
        super().__init__(_NAME, _BASE, makedefault=True)
        self._root = root
        self.operations: list[Operation] = []
        self.fault: Fault | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Every connection that uses it must be closed by now."""
        self.unregister()

    def mark(self, text: str) -> None:
        self.operations.append(Mark(text))

    def fails(self, action: Action) -> bool:
        return self.fault is not None and self.fault.strikes(action)

    def failure(self, action: Action) -> apsw.Error:
        """What SQLite's own VFS makes of the error that the system call answered."""
        assert self.fault is not None
        return _failure(action, self.fault.code)

    # ---- called by SQLite -----------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self._root):
            return apsw.VFSFile(_BASE, name, flags)
        if self.fails("open"):
            raise self.failure("open")
        if flags[0] & apsw.SQLITE_OPEN_CREATE:
            self.operations.append(Create(path.removeprefix(self._root)))
        return _RecordedFile(name, flags, self, path.removeprefix(self._root))

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        if filename.startswith(self._root):
            self.operations.append(Delete(filename.removeprefix(self._root)))


class _Writable(Protocol):
    """What apsw leaves untyped before Python 3.12."""

    def xWrite(self, data: bytes, offset: int) -> None: ...


class _RecordedFile(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], vfs: RecordingVfs, file: str
    ) -> None:
        super().__init__(_BASE, name, flags)
        self._vfs = vfs
        self._file = file

    def xRead(self, amount: int, offset: int) -> bytes:
        if self._vfs.fails("read"):
            raise self._vfs.failure("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._attempt("write", Write(self._file, offset, bytes(data)))
        cast("_Writable", super()).xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._attempt("truncate", Truncate(self._file, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._attempt("sync", Sync(self._file), failed=FailedSync(self._file))
        super().xSync(flags)

    def _attempt(
        self, action: Action, operation: Operation, *, failed: Operation | None = None
    ) -> None:
        if not self._vfs.fails(action):
            self._vfs.operations.append(operation)
            return
        if failed is not None:
            self._vfs.operations.append(failed)
        raise self._vfs.failure(action)


def _failure(action: Action, code: int) -> apsw.Error:
    message = os.strerror(code)
    if action == "open":
        return apsw.CantOpenError(message)
    if action == "write" and code == errno.ENOSPC:
        return apsw.FullError(message)
    return apsw.IOError(message)
