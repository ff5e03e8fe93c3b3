"""What must be true of a database, whatever happened to the processes that wrote it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, cast

from perdure.ports import Row
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.database.sqlite_connection import Connection
from perdure.store.log import projector

PROJECTIONS: Final = ("session", "session_message", "session_input", "todo")
_READ: Final = {
    "approval": "SELECT id, project_id, directory, session_id, agent, action, resource,"
    " time_expires FROM approval"
}
"""How tables are read whose other columns name this machine's files."""
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
_GAPS: Final = """
    SELECT session_id FROM event GROUP BY session_id
    HAVING min(seq) <> 0 OR max(seq) <> count(*) - 1
"""


def dump(path: Path) -> dict[str, Sequence[Row]]:
    """Every row of every table, in an order of its own; without the inodes of places."""
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        names = [str(row[0]) for row in _rows(connection, _TABLES)]
        return {
            name: sorted(_rows(connection, _READ.get(name, f'SELECT * FROM "{name}"')), key=repr)
            for name in names
        }


async def check(path: Path) -> None:
    """The file is sound, no log has a gap, and the projections are what the log makes them."""
    copy = path.with_name(f"{path.stem}-copy.db")
    copy.unlink(missing_ok=True)
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        assert connection.pragma("integrity_check") == "ok"
        assert _rows(connection, _GAPS) == []
        connection.execute("VACUUM INTO :copy", {"copy": str(copy)})
    before = dump(copy)
    async with SqliteDatabase(str(copy)) as database:
        await projector.rebuild(database)
    after = dump(copy)
    for table in PROJECTIONS:
        assert after[table] == before[table], table


def _rows(connection: Connection, sql: str) -> Sequence[Row]:
    return cast("Sequence[Row]", connection.execute(sql).fetchall())
