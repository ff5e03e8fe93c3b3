"""Copy a database while other processes use it, and check the copy.

The copy is one state of the database, as a crash at that moment would have left it. A copy with a
damaged page or row is no backup: it is refused, and says how the original can be repaired.
"""

from contextlib import closing

import apsw

from perdure.ports import DatabaseError
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import recover, repair


class CheckedCopy(Value):
    """What a copy holds."""

    sessions: int
    events: int


async def copy_checked(path: str, target: str) -> CheckedCopy:
    """Copy the database at `path` to the new file `target`. Raises DatabaseError."""
    try:
        with closing(sqlite_connection.connect(path)) as source:
            migrate.copy_database(source, target)
    except apsw.Error as error:
        raise sqlite_connection.translate_error(error, path) from error
    return await check(target)


async def check(path: str) -> CheckedCopy:
    """Check every page and row of a database that no process uses. Raises DatabaseError.

    One of an earlier version is migrated.
    """
    migrate.migrate(path)
    try:
        with closing(sqlite_connection.connect(path)) as connection:
            if recover.find_damaged_pages(path):
                raise DatabaseError(f"{path} has damaged pages")
            damaged = await repair.find_damaged_rows(SqliteTransaction(connection, path))
            if damaged:
                raise DatabaseError(f"{path} has damaged rows: {damaged[0].message}")
            return CheckedCopy(
                sessions=_count(connection, "session"), events=_count(connection, "event")
            )
    except apsw.Error as error:
        raise sqlite_connection.translate_error(error, path) from error


def _count(connection: Connection, table: str) -> int:
    ((count,),) = migrate.fetch_rows(connection, f"SELECT count(*) FROM {table}")
    assert isinstance(count, int)
    return count
