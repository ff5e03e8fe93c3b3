"""Rebuild a database with damaged pages from the rows that can still be read.

The rows are copied table by table into a new database, which then takes the place of the damaged
one; its indexes are made anew. Rows on damaged pages are lost, and what depends on them is for
store.log.repair to restore from the log or to report. No other process may use the database.

Invariant: the damaged files are copied as they are before anything else is done.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Final, cast

import apsw

from perdure.ports import DatabaseError, Row, SqlValue
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite_connection import Connection

_UNREADABLE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.IOError)
_ROWID_MAX: Final = 2**62
_SMALL_STEPS: Final = 64
"""How many row ids after a damaged place are tried one by one: a page has fewer rows."""
_FILES: Final = ("", "-wal")


class RecoveredTable(Value):
    name: str
    rows: int
    damaged_places: int


def find_damaged_pages(path: str) -> bool:
    """Whether pages or indexes of the database cannot be trusted. Reads the whole file."""
    with closing(sqlite_connection.open_connection(path)) as connection:
        try:
            return migrate.fetch_rows(connection, "PRAGMA integrity_check(1)") != [("ok",)]
        except _UNREADABLE:
            return True


def rebuild(path: str, backup: str) -> tuple[RecoveredTable, ...]:
    """Copy the files to `backup`, then replace the database by one with all readable rows."""
    for suffix in _FILES:
        if os.path.exists(path + suffix):
            shutil.copyfile(path + suffix, backup + suffix)
            os.chmod(backup + suffix, 0o600)
    fresh = f"{path}.recovered"
    _remove(fresh)
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        migrate.migrate(fresh)
        tables = _copy(path, fresh)
    except apsw.Error as error:
        raise DatabaseError(
            f"Nothing of {path} can be read: {error}. Restore the data directory from a backup;"
            f" the damaged files are unchanged, with a copy in {backup}."
        ) from error
    # The damaged log goes first: it must never be applied to the new database.
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)
    os.replace(fresh, path)
    _remove(fresh)
    return tables


def _copy(path: str, fresh: str) -> tuple[RecoveredTable, ...]:
    with (
        closing(sqlite_connection.open_connection(path)) as source,
        closing(sqlite_connection.connect(fresh)) as target,
    ):
        source.pragma("query_only", True)
        source.pragma("cell_size_check", True)
        target.pragma("foreign_keys", False)
        found = {name for (name,) in migrate.fetch_rows(source, "SELECT name FROM sqlite_schema")}
        tables = [table for table in _tables(target) if table.name in found]
        target.execute("BEGIN IMMEDIATE")
        recovered = tuple(table.copy(source, target) for table in tables)
        target.execute("COMMIT")
        return recovered


class _Table(Value):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Columns of the primary key of a table without row ids; empty for others."""

    def copy(self, source: Connection, target: Connection) -> RecoveredTable:
        columns = ", ".join(self.columns if self.key else ("rowid", *self.columns))
        values = ", ".join(f":v{number}" for number in range(columns.count(",") + 1))
        insert = f"INSERT OR IGNORE INTO {self.name} ({columns}) VALUES ({values})"
        copied = damaged = 0
        for row in self._by_key(source, columns) if self.key else self._by_rowid(source, columns):
            if row is None:
                damaged += 1
                continue
            try:
                target.execute(insert, {f"v{number}": value for number, value in enumerate(row)})
                copied += target.changes()
            except apsw.ConstraintError:
                # What a damaged page shows need not be a row of this table.
                damaged += 1
        return RecoveredTable(self.name, copied, damaged)

    def _by_rowid(self, source: Connection, columns: str) -> Iterator[Row | None]:
        """Every readable row, and None for each damaged place."""
        after = -_ROWID_MAX
        while True:
            sql = (
                f"SELECT {columns} FROM {self.name} NOT INDEXED WHERE rowid > :after ORDER BY rowid"
            )
            try:
                for row in _each(source, sql, {"after": after}):
                    after = cast("int", row[0])
                    yield row
            except _UNREADABLE:
                yield None
                beyond = self._next_readable(source, max(after, 0))
                if beyond is None:
                    return
                after = beyond
            else:
                return

    def _next_readable(self, source: Connection, after: int) -> int | None:
        """A place after a damaged one from which rows can be read; None when there is none."""
        step = 1
        sql = (
            f"SELECT rowid FROM {self.name} NOT INDEXED WHERE rowid > :after ORDER BY rowid LIMIT 1"
        )
        while step < _ROWID_MAX:
            with suppress(*_UNREADABLE):
                found = [*_each(source, sql, {"after": after + step})]
                # Without a row beyond, the damaged place was the last one.
                return after + step if found else None
            step = step + 1 if step < _SMALL_STEPS else step * 2
        return None

    def _by_key(self, source: Connection, columns: str) -> Iterator[Row | None]:
        """The rows before the first damaged place, and those after the last."""
        for order in ("ASC", "DESC"):
            by = ", ".join(f"{column} {order}" for column in self.key)
            try:
                yield from _each(source, f"SELECT {columns} FROM {self.name} ORDER BY {by}", {})
            except _UNREADABLE:
                yield None
            else:
                return


def _tables(target: Connection) -> list[_Table]:
    sql = "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    tables: list[_Table] = []
    for name, without_rowid in migrate.fetch_rows(target, sql):
        if str(name).startswith("sqlite_"):
            continue
        info = migrate.fetch_rows(target, f"SELECT name, pk FROM pragma_table_info('{name}')")
        keyed = sorted((int(str(place)), str(column)) for column, place in info if place)
        key = tuple(column for _, column in keyed) if without_rowid else ()
        tables.append(_Table(str(name), tuple(str(column) for column, _ in info), key))
    return tables


def _each(source: Connection, sql: str, parameters: dict[str, SqlValue]) -> Iterator[Row]:
    """The rows one by one, so that those before a damaged page are seen."""
    yield from cast("Iterator[Row]", source.execute(sql, parameters))


def _remove(path: str) -> None:
    for suffix in ("", "-wal", "-shm", ".migrate-lock"):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)
