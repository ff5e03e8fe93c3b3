"""Find rows that cannot be read, and rebuild projections from the log.

A repair first copies the whole database. If pages are damaged, it saves the rows that can be read
(store.log.recover). Then it creates missing tables and indexes, and folds the log again for each
Session with a damaged projection. Damage of the log is only reported: a Session whose log is
damaged keeps the rows it has.
"""

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from typing import Final

from perdure.core import limits
from perdure.ports import DatabaseError, Transaction, UniqueViolationError
from perdure.schema.errors import DamagedRowError, PromptConflictError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log import projector, recover
from perdure.store.log.recover import RecoveredTable
from perdure.store.tables import (
    deletion_table,
    inbox_table,
    message_table,
    row_checks,
    session_table,
    todo_table,
)

_LOG: Final = "event"
_PROJECTIONS: Final = {
    "session": "id",
    "session_message": "session_id",
    "session_input": "session_id",
    "todo": "session_id",
}
"""Each projection table, and its column that names the Session."""


class RepairReport(Value, kw_only=True):
    backup: str
    """Path of the copy that was made first."""
    created: tuple[str, ...]
    """Tables and indexes that were missing."""
    recovered: tuple[RecoveredTable, ...]
    """The tables, if pages of the file were damaged."""
    restored: tuple[SessionID, ...]
    remaining: tuple[DamagedRowError, ...]


async def find_damaged_rows(tx: Transaction) -> tuple[DamagedRowError, ...]:
    """Find every row that cannot be read, each once."""
    found: dict[tuple[str, SessionID, int | None], DamagedRowError] = {}
    for search in (_check_log, _check_sessions, _check_messages, _check_inbox, _check_todos):
        async for error in search(tx):
            found.setdefault((error.table, error.session_id, error.seq), error)
    return tuple(found.values())


async def repair(path: str) -> RepairReport:
    """Restore what the log can restore. Raises DatabaseError when the log itself is missing."""
    backup = _unused_path(f"{path}.before-repair")
    recovered = recover.rebuild(path, backup) if recover.find_damaged_pages(path) else ()
    created = _create_missing(path, None if recovered else backup)
    async with SqliteDatabase(path) as database:
        found = await database.read(find_damaged_rows)
        damaged = [error.session_id for error in found]
        anew = created or recovered
        session_ids = await database.read(_list_sessions) if anew else damaged

        async def job(tx: Transaction) -> list[SessionID]:
            return [one for one in dict.fromkeys(session_ids) if await _restore(tx, one)]

        restored = await database.write(job)
        remaining = await database.read(find_damaged_rows)
    return RepairReport(
        backup=backup,
        created=created,
        recovered=recovered,
        restored=tuple(restored),
        remaining=remaining,
    )


# ---- finding ------------------------------------------------------------------------------------


async def _check_log(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id in await _list_sessions(tx):
        expected = 0
        while True:
            rows = await tx.fetch(
                "SELECT seq, type, data FROM event WHERE session_id = :id AND seq >= :from"
                " ORDER BY seq LIMIT :limit",
                {"id": session_id, "from": expected, "limit": limits.REPLAY_ROWS_PER_READ},
            )
            for seq, stored, data in rows:
                assert isinstance(seq, int)
                if seq != expected:
                    reason = f"sequences {expected} to {seq - 1} are missing"
                    yield DamagedRowError(session_id, table=_LOG, seq=expected, reason=reason)
                try:
                    row_checks.decode_event(stored, data, session_id, seq=seq)
                except DamagedRowError as error:
                    yield error
                expected = seq + 1
            if len(rows) < limits.REPLAY_ROWS_PER_READ:
                break


async def _check_sessions(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id in await _list_sessions(tx):
        try:
            if await session_table.load(tx, session_id) is not None:
                continue
        except DamagedRowError as error:
            yield error
        else:
            yield DamagedRowError(session_id, table="session", seq=None, reason="it is missing")


async def _check_messages(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id, seq in await _list_messages(tx):
        try:
            row = await message_table.get_at(tx, session_id, seq)
            if row is not None:
                row.message()
        except DamagedRowError as error:
            yield error


async def _check_inbox(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for (message_id,) in await tx.fetch("SELECT id FROM session_input"):
        try:
            await inbox_table.get(tx, MessageID(str(message_id)))
        except DamagedRowError as error:
            yield error


async def _check_todos(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for (session_id,) in await tx.fetch("SELECT DISTINCT session_id FROM todo"):
        try:
            await todo_table.load_todos(tx, SessionID(str(session_id)))
        except DamagedRowError as error:
            yield error


async def _list_sessions(tx: Transaction) -> list[SessionID]:
    """All Sessions but those that are being deleted, whose logs have gaps."""
    deleting = await deletion_table.list_sessions(tx)
    rows = await tx.fetch("SELECT session_id FROM event GROUP BY session_id ORDER BY min(rowid)")
    return [SessionID(str(row[0])) for row in rows if row[0] not in deleting]


async def _list_messages(tx: Transaction) -> list[tuple[SessionID, int]]:
    return [
        (SessionID(str(session_id)), seq)
        for session_id, seq in await tx.fetch("SELECT session_id, seq FROM session_message")
        if isinstance(seq, int)
    ]


# ---- restoring ----------------------------------------------------------------------------------


async def _restore(tx: Transaction, session_id: SessionID) -> bool:
    """Fold one log again; when that fails, the old rows stay. Returns whether it worked."""
    await tx.execute("SAVEPOINT restore")
    try:
        for table, column in _PROJECTIONS.items():
            await tx.execute(f"DELETE FROM {table} WHERE {column} = :id", {"id": session_id})
        await projector.rebuild_session(tx, session_id)
    except (DamagedRowError, UniqueViolationError, PromptConflictError):
        await tx.execute("ROLLBACK TO restore")
        return False
    finally:
        await tx.execute("RELEASE restore")
    return True


def _create_missing(path: str, backup: str | None) -> tuple[str, ...]:
    """Create the tables and indexes that the database lacks; returns their names.

    With `backup` the database is copied there first.
    """
    with closing(sqlite_connection.connect(path)) as connection:
        missing = migrate.find_missing_parts(connection)
        if _LOG in missing:
            raise DatabaseError(
                f"{path} has no event log. Restore the data directory from a backup;"
                " nothing was changed."
            )
        if backup is not None:
            migrate.copy_database(connection, backup)
        for statement in _create_statements(missing):
            connection.execute(statement)
    return missing


def _create_statements(names: Iterable[str]) -> list[str]:
    """The CREATE statements of these, each table before its indexes."""
    with closing(sqlite_connection.open_connection(":memory:")) as model:
        for number in range(1, migrate.SCHEMA_VERSION + 1):
            model.execute(migrate.read_migration(number))
        wanted = set(names)
        rows = migrate.fetch_rows(model, "SELECT name, sql FROM sqlite_schema ORDER BY rowid")
    return [str(sql) for name, sql in rows if name in wanted]


def _unused_path(path: str) -> str:
    """`path`, with a number if it exists: a copy never overwrites an earlier one."""
    number, found = 1, path
    while os.path.exists(found):
        number += 1
        found = f"{path}-{number}"
    return found
