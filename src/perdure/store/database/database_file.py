"""The files of an open database: whether a later start will read what is committed to them.

A process keeps writing to a file that was removed, renamed or replaced, because it holds it open;
everything committed from then on is gone at the next start. The same is true of the write-ahead
log and of the shared memory beside it, and of a directory or link on the way to them. The check
of a commit costs two stats, once for all jobs that share it.
"""

import os
from typing import Final, Literal

from perdure.ports import DatabaseError
from perdure.schema.errors import StorageError

_Fault = Literal["missing", "replaced", "emptied", "unreadable"]
_TEXTS: Final[dict[_Fault, str]] = {
    "missing": "was removed or renamed",
    "replaced": "was replaced by another file",
    "emptied": "was emptied",
    "unreadable": "cannot be looked at",
}


class LostFileError(DatabaseError, StorageError):
    """What is committed now would not be found again. It is refused until the file is back."""

    def __init__(self, path: str, fault: _Fault) -> None:
        super().__init__(
            f"{path} {_TEXTS[fault]} while it was in use, so nothing more can be stored. Put the"
            " same file back, and the server goes on; or restart the server to use the files"
            " that are there now."
        )


class DatabaseFile:
    """The database, its log and its shared memory; made after a read, which creates the latter."""

    def __init__(self, path: str) -> None:
        self._database = _OpenFile(path)
        self._log = _OpenFile(f"{path}-wal")
        self._memory = _OpenFile(f"{path}-shm")
        self._is_lost = False

    def check_commit(self) -> None:
        """Raise LostFileError if a later start would not read what was just committed."""
        self._is_lost = True
        self._log.check()
        if not self._database.check():
            raise LostFileError(self._database.path, "emptied")
        self._is_lost = False

    def require_found(self) -> None:
        """After a check that failed, check again: nothing more is written to lost files."""
        if self._is_lost:
            self.check_commit()

    def check(self) -> None:
        """As `check_commit`, and that other processes share the same memory."""
        self.check_commit()
        self._memory.check()


class _OpenFile:
    def __init__(self, path: str) -> None:
        self.path = path
        status = self._look()
        self._inode, self._device = status.st_ino, status.st_dev

    def check(self) -> int:
        """Return the size. Raises LostFileError if the path leads to another file or nowhere."""
        status = self._look()
        if status.st_ino != self._inode or status.st_dev != self._device:
            raise LostFileError(self.path, "replaced")
        return status.st_size

    def _look(self) -> os.stat_result:
        try:
            return os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise LostFileError(self.path, "missing") from None
        except OSError as error:
            raise LostFileError(self.path, "unreadable") from error
