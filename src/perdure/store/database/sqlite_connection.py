"""SQLite connections: version check, settings, and translation of errors.

`open_connection` changes nothing in the file, so a database can be checked before it is known to
be ours; `configure` sets what durability depends on.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, cast

import apsw

from perdure.core import limits
from perdure.ports import DatabaseError, SqlValue, UniqueViolationError
from perdure.schema.errors import ServiceUnavailableError, StorageError

# Earlier versions can corrupt a database that several connections write and checkpoint at once.
SQLITE_VERSION_LEAST: Final = (3, 51, 3)
APPLICATION_ID: Final = 0x50455244
BUSY_MILLIS: Final = 5_000
# A commit writes whole pages and our rows are short: half the default halves what a turn writes.
_PAGE_BYTES: Final = 2_048
_CACHE_KIB: Final = 8_192
_LOG_BYTES_KEPT: Final = 16 * 1024 * 1024


class Cursor(Protocol):
    def fetchall(self) -> Sequence[object]: ...


class Connection(Protocol):
    """The part of apsw.Connection in use; its own types need a newer Python to be complete."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(
        self, statements: str, bindings: Mapping[str, SqlValue] | None = None
    ) -> Cursor: ...
    def config(self, op: int, value: int, /) -> int: ...
    def pragma(self, name: str, value: SqlValue = None) -> SqlValue: ...
    def changes(self) -> int: ...
    def set_busy_timeout(self, milliseconds: int) -> None: ...
    def close(self) -> None: ...


class DiskError(DatabaseError, StorageError):
    """The disk is full, read-only or broken. Nothing was committed; a later write may succeed.

    A StorageError, so that callers of the API get it as a declared error.
    """


class StoreLockedError(DatabaseError, ServiceUnavailableError):
    """Another process holds the lock of the database. Nothing was committed; try again.

    A ServiceUnavailableError, so that callers of the API get it as a declared error.
    """

    def __init__(self, path: str) -> None:
        ServiceUnavailableError.__init__(
            self,
            f"Another process has kept {path} locked for more than"
            f" {limits.LOCK_WAIT_SECONDS_MAX:.0f} seconds, and nothing was stored. Try again;"
            " /api/health/detail names processes that do not respond.",
            service="store",
        )


class DamagedDatabaseError(DatabaseError, StorageError):
    """Pages of the database cannot be used. What lies elsewhere in the file still works."""

    def __init__(self, path: str, error: apsw.Error) -> None:
        super().__init__(
            f"{path} is damaged or not a SQLite database: {error}. Stop perdure, then run"
            " `perdure doctor` for details; `perdure doctor --repair` makes a copy and saves what"
            " can be read."
        )


class UnsafeSqliteError(DatabaseError):
    def __init__(self, version: str) -> None:
        least = ".".join(map(str, SQLITE_VERSION_LEAST))
        super().__init__(
            f"SQLite {version} has a bug that can corrupt a shared database; {least} or newer is"
            " needed. Remedy: pip install --upgrade apsw (its wheels carry a current SQLite)."
        )


def require_safe_version(version: str) -> None:
    """Refuse SQLite libraries with the WAL-reset bug."""
    if tuple(int(part) for part in version.split(".")[:3]) < SQLITE_VERSION_LEAST:
        raise UnsafeSqliteError(version)


def connect(path: str) -> Connection:
    """Open a connection with all settings that durability depends on."""
    connection = open_connection(path)
    try:
        configure(connection)
    except apsw.Error as error:
        connection.close()
        raise translate_error(error, path) from error
    return connection


def open_connection(path: str) -> Connection:
    """Open a connection without changing the file."""
    require_safe_version(apsw.sqlite_lib_version())
    try:
        connection = cast("Connection", apsw.Connection(path))
    except apsw.Error as error:
        raise translate_error(error, path) from error
    connection.set_busy_timeout(BUSY_MILLIS)
    return connection


def configure(connection: Connection) -> None:
    # One plan for each statement; otherwise many are replanned for every value bound to them.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("page_size", _PAGE_BYTES)
    connection.pragma("journal_mode", "wal")
    # An acknowledged prompt must survive a power loss, not only a crash.
    connection.pragma("synchronous", "full")
    connection.pragma("foreign_keys", True)
    # Deleted rows are overwritten, so that no word of a deleted Session stays in the file. What is
    # appended costs the same as without it.
    connection.pragma("secure_delete", True)
    connection.pragma("cache_size", -_CACHE_KIB)
    # A large transaction grows the log; it is truncated once all of it is in the database.
    connection.pragma("journal_size_limit", _LOG_BYTES_KEPT)


def empty_log(connection: Connection) -> None:
    """Move the write-ahead log into the database and truncate it. Raises DatabaseError."""
    connection.set_busy_timeout(BUSY_MILLIS)
    rows = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    ((is_busy, _, _),) = cast("list[tuple[int, int, int]]", rows)
    if is_busy:
        raise DatabaseError("another process uses the write-ahead log")


def translate_error(error: apsw.Error, path: str) -> DatabaseError:
    match error:
        case apsw.ConstraintError():
            return UniqueViolationError(str(error))
        case apsw.FullError():
            return DiskError(
                f"The disk that holds {path} is full. Free some space and try again;"
                " nothing has to be restarted."
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError():
            return DiskError(
                f"Cannot open or write {path}: {error}. Check its owner and permissions,"
                " and whether its disk is mounted for writing."
            )
        case apsw.IOError():
            return DiskError(
                f"The disk that holds {path} failed: {error}. Check its free space and the"
                " system's log, then try again; nothing has to be restarted."
            )
        case apsw.NotADBError() | apsw.CorruptError():
            return DamagedDatabaseError(path, error)
        case apsw.BusyError():
            return StoreLockedError(path)
        case _:
            return DatabaseError(f"{path}: {error}")
