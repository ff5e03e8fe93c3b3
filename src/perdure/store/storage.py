"""What the database takes on disk, and giving back what it no longer needs.

Deleted rows leave free pages behind, which later rows fill; only compacting gives them back to the
file system. That rewrites the whole file, so it asks for as much room again, and for a moment in
which nobody else writes. Files beside the database are not looked at here.
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
    """Of the file, in pages that hold nothing."""
    log_bytes: int
    """Beside the file: what was committed and is not in it yet."""
    sessions: int
    archived: int
    events: int
    largest: tuple[SessionSize, ...]


def usage(path: str) -> DatabaseUsage:
    """Reads only, beside whoever else uses the database."""
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
        raise sqlite_connection.translated(error, path) from error
    finally:
        connection.close()


def compact(path: str) -> None:
    """Give free pages back. Raises DatabaseError when there is no room, or somebody writes."""
    size = os.path.getsize(path) + _size(f"{path}-wal")
    # The copy is made in the log beside the file, which then replaces it page by page.
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free < size:
        raise DatabaseError(f"Compacting {path} needs {size} bytes of free disk; there are {free}")
    connection = sqlite_connection.connect(path)
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except apsw.Error as error:
        raise sqlite_connection.translated(error, path) from error
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
