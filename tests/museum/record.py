"""Writes a database down as SQL, for the museum: `python -m tests.museum.record DATABASE PROJECT`.

Done once for each schema version, when it is released. What is written is never changed: it is
what people have on their disks.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import cast

from perdure.ports import Row, SqlValue
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite_connection import Connection
from tests.museum.old_databases import STORED_PROJECT

_SCHEMA = "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid"


def recorded(path: str, project: str) -> str:
    with closing(sqlite_connection.open_connection(path)) as connection:
        return "".join(f"{line}\n" for line in _lines(connection)).replace(project, STORED_PROJECT)


def _lines(connection: Connection) -> Iterator[str]:
    schema = _rows(connection, _SCHEMA)
    yield from (f"{sql};" for _, _, sql in schema)
    for name, kind, _ in schema:
        if kind == "table":
            for row in _rows(connection, f'SELECT * FROM "{name}"'):
                yield f"INSERT INTO {name} VALUES ({', '.join(map(_literal, row))});"
    for pragma in ("application_id", "user_version"):
        yield f"PRAGMA {pragma} = {connection.pragma(pragma)};"


def _literal(value: SqlValue) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"CAST({_literal(value.decode())} AS BLOB)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


def _rows(connection: Connection, sql: str) -> list[Row]:
    return cast("list[Row]", connection.execute(sql).fetchall())


if __name__ == "__main__":
    sys.stdout.write(recorded(*sys.argv[1:]))
