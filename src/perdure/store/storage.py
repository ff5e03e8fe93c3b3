"""Disk usage of the database, and compaction of its file.

Deleted rows leave free pages, which later rows reuse; only compacting returns them to the file
system. That rewrites the whole file: it needs as much free disk again, and no other process may
write meanwhile. Other files of the data directory are not counted here.
"""

import os
import shutil
from typing import Final, cast

import apsw

from perdure.ports import DatabaseError
from perdure.schema.value import Value
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite_connection import Connection

_LARGEST_SHOWN: Final = 10


class SessionSize(Value):
    session_id: str
    events: int


class DatabaseUsage(Value, kw_only=True):
    file_bytes: int
    free_bytes: int
    """Part of `file_bytes`: unused pages."""
    log_bytes: int
    """Size of the write-ahead log."""
    sessions: int
    archived: int
    events: int
    largest: tuple[SessionSize, ...]


def load_usage(path: str) -> DatabaseUsage:
    """Measure a database. Reads only, so other processes may use it meanwhile."""
    connection = sqlite_connection.connect(path)
    try:
        connection.pragma("query_only", True)
        page = _number(connection, "PRAGMA page_size")
        return DatabaseUsage(
            file_bytes=os.path.getsize(path),
            free_bytes=page * _number(connection, "PRAGMA freelist_count"),
            log_bytes=_size(f"{path}-wal"),
            sessions=_number(connection, "SELECT count(*) FROM session"),
            archived=_number(connection, "SELECT count(*) FROM session WHERE archived = 1"),
            events=_number(connection, "SELECT count(*) FROM event"),
            largest=_largest(connection),
        )
    except apsw.Error as error:
        raise sqlite_connection.translate_error(error, path) from error
    finally:
        connection.close()


def compact(path: str) -> None:
    """Return free pages to the file system.

    Raises DatabaseError when the disk has too little space or another process writes.
    """
    size = os.path.getsize(path) + _size(f"{path}-wal")
    # VACUUM writes the copy to the write-ahead log; the checkpoint then moves it into the file.
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free < size:
        raise DatabaseError(f"Compacting {path} needs {size} bytes of free disk; there are {free}")
    connection = sqlite_connection.connect(path)
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except apsw.Error as error:
        raise sqlite_connection.translate_error(error, path) from error
    finally:
        connection.close()


def _largest(connection: Connection) -> tuple[SessionSize, ...]:
    rows = connection.execute(
        "SELECT session_id, count(*) AS events FROM event GROUP BY session_id"
        " ORDER BY events DESC, session_id LIMIT :limit",
        {"limit": _LARGEST_SHOWN},
    ).fetchall()
    return tuple(SessionSize(name, events) for name, events in cast("list[tuple[str, int]]", rows))


def _number(connection: Connection, sql: str) -> int:
    ((value,),) = cast("list[tuple[int]]", connection.execute(sql).fetchall())
    return value


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
