"""Finding rows that cannot be read, and making projections anew from the log.

The log is only ever read: what is damaged there stays as it is, and is told. A repair first copies
the whole database. Then it makes tables and indexes that are missing, and folds the log again for
each Session with a damaged projection. A Session whose own log is damaged keeps the rows it has.
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
from perdure.store.log import projector
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
"""Each table that is made from the log, and its column that names the Session."""


class Repaired(Value, kw_only=True):
    backup: str
    """The copy that was made first."""
    made: tuple[str, ...]
    """Tables and indexes that were missing."""
    restored: tuple[SessionID, ...]
    remaining: tuple[DamagedRowError, ...]


async def find(tx: Transaction) -> tuple[DamagedRowError, ...]:
    """Every row that cannot be read, each once."""
    found: dict[tuple[str, SessionID, int | None], DamagedRowError] = {}
    for search in (_in_log, _in_sessions, _in_messages, _in_inbox, _in_todos):
        async for error in search(tx):
            found.setdefault((error.table, error.session_id, error.seq), error)
    return tuple(found.values())


async def repair(path: str) -> Repaired:
    """Restore what the log can restore. Raises DatabaseError when the log itself is gone."""
    backup = _unused(f"{path}.before-repair")
    made = _make_missing(path, backup)
    async with SqliteDatabase(path) as database:
        found = await database.read(find)
        wanted = await database.read(_sessions) if made else [error.session_id for error in found]

        async def job(tx: Transaction) -> list[SessionID]:
            return [one for one in dict.fromkeys(wanted) if await _restore(tx, one)]

        restored = await database.write(job)
        remaining = await database.read(find)
    return Repaired(backup=backup, made=made, restored=tuple(restored), remaining=remaining)


# ---- looking ------------------------------------------------------------------------------------


async def _in_log(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id in await _sessions(tx):
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
                    row_checks.event(stored, data, session_id, seq=seq)
                except DamagedRowError as error:
                    yield error
                expected = seq + 1
            if len(rows) < limits.REPLAY_ROWS_PER_READ:
                break


async def _in_sessions(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id in await _sessions(tx):
        try:
            if await session_table.load(tx, session_id) is not None:
                continue
        except DamagedRowError as error:
            yield error
        else:
            yield DamagedRowError(session_id, table="session", seq=None, reason="it is missing")


async def _in_messages(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for session_id, seq in await _places(tx, "SELECT session_id, seq FROM session_message"):
        try:
            row = await message_table.at(tx, session_id, seq)
            if row is not None:
                row.message()
        except DamagedRowError as error:
            yield error


async def _in_inbox(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for (message_id,) in await tx.fetch("SELECT id FROM session_input"):
        try:
            await inbox_table.get(tx, MessageID(str(message_id)))
        except DamagedRowError as error:
            yield error


async def _in_todos(tx: Transaction) -> AsyncIterator[DamagedRowError]:
    for (session_id,) in await tx.fetch("SELECT DISTINCT session_id FROM todo"):
        try:
            await todo_table.of(tx, SessionID(str(session_id)))
        except DamagedRowError as error:
            yield error


async def _sessions(tx: Transaction) -> list[SessionID]:
    """Those that are being removed have holes, and nothing of them is needed any more."""
    leaving = await deletion_table.begun(tx)
    rows = await tx.fetch("SELECT DISTINCT session_id FROM event ORDER BY session_id")
    return [SessionID(str(row[0])) for row in rows if row[0] not in leaving]


async def _places(tx: Transaction, sql: str) -> list[tuple[SessionID, int]]:
    return [
        (SessionID(str(session_id)), seq)
        for session_id, seq in await tx.fetch(sql)
        if isinstance(seq, int)
    ]


# ---- restoring ----------------------------------------------------------------------------------


async def _restore(tx: Transaction, session_id: SessionID) -> bool:
    """Fold one log again; when that fails, whatever was there stays."""
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


def _make_missing(path: str, backup: str) -> tuple[str, ...]:
    """Copy the database, then make what its schema lacks; the names of that."""
    with closing(sqlite_connection.connect(path)) as connection:
        missing = migrate.missing_parts(connection)
        if _LOG in missing:
            raise DatabaseError(
                f"{path} holds no log any more. Restore the data directory from a backup;"
                " nothing was changed."
            )
        migrate.copy(connection, backup)
        for statement in _statements(missing):
            connection.execute(statement)
    return missing


def _statements(names: Iterable[str]) -> list[str]:
    """How each of these is made, in an order that works: a table before its indexes."""
    with closing(sqlite_connection.opened(":memory:")) as model:
        for number in range(1, migrate.SCHEMA_VERSION + 1):
            model.execute(migrate.packaged_sql(number))
        wanted = set(names)
        rows = migrate.rows(model, "SELECT name, sql FROM sqlite_schema ORDER BY rowid")
    return [str(sql) for name, sql in rows if name in wanted]


def _unused(path: str) -> str:
    """`path`, or the first number after it: a copy never covers an earlier one."""
    number, found = 1, path
    while os.path.exists(found):
        number += 1
        found = f"{path}-{number}"
    return found
