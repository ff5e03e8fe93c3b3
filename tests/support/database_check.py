"""What must be true of a database, whatever happened to the processes that wrote it."""

from pathlib import Path
from typing import Final

import apsw

from perdure.store import projector
from perdure.store.database.sqlite import SqliteDatabase

Rows = list[tuple[object, ...]]

PROJECTIONS: Final = ("session", "session_message", "session_input")


def dump(path: Path) -> dict[str, Rows]:
    """Every row of every table, in an order of its own."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = [str(row[0]) for row in tables.fetchall()]
        return {name: _rows(connection, name) for name in sorted(names)}
    finally:
        connection.close()


async def check(path: Path) -> None:
    """The file is sound, no log has a gap, and the projections are what the log makes them."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        assert connection.pragma("integrity_check") == "ok"
        gaps = connection.execute(
            "SELECT session_id FROM event GROUP BY session_id"
            " HAVING min(seq) <> 0 OR max(seq) <> count(*) - 1"
        )
        assert gaps.fetchall() == []
        copy = path.with_name(f"{path.stem}-copy.db")
        copy.unlink(missing_ok=True)
        connection.execute("VACUUM INTO ?", (str(copy),))
    finally:
        connection.close()
    before = dump(copy)
    async with SqliteDatabase(str(copy)) as database:
        await projector.rebuild(database)
    after = dump(copy)
    for table in PROJECTIONS:
        assert after[table] == before[table], table


def _rows(connection: apsw.Connection, table: str) -> Rows:
    return sorted(connection.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr)
