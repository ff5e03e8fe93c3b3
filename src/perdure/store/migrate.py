"""Migrate a database to the current schema: numbered SQL files, forward only.

Each file is one transaction. Processes that start together take turns on a lock file and check
the version again once they hold it. A database with data is copied before it is changed.
`PRAGMA user_version` is the number of the last file applied, so an up-to-date start reads no file.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, cast

import apsw

from perdure.ports import DatabaseError, Row
from perdure.schema.value import Value
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite_connection import Connection

SCHEMA_VERSION: Final = 5
# Not importlib.resources: importing it takes longer than opening the database.
_FOLDER: Final = os.path.join(os.path.dirname(__file__), "migrations")


class ForeignDatabaseError(DatabaseError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a database of another program. Choose another --data-dir"
            " (or PERDURE_DATA_DIR); nothing was changed."
        )


class NewerDatabaseError(DatabaseError):
    def __init__(self, path: str, *, found: int, known: int) -> None:
        super().__init__(
            f"{path} was written by a newer perdure (schema {found}, this one knows"
            f" {known}). Upgrade perdure; nothing was changed."
        )


class IncompleteDatabaseError(DatabaseError):
    def __init__(self, path: str, missing: tuple[str, ...]) -> None:
        super().__init__(
            f"{path} lacks {', '.join(missing)}, which belong to its schema. `perdure doctor"
            " --repair` rebuilds them from the log; nothing was changed."
        )


class Schema(Value):
    """A schema version, and the SQL of each step that leads to it."""

    version: int
    sql: Callable[[int], str]
    parts: tuple[str, ...] = ()
    """The tables and indexes that this version needs."""


def read_migration(number: int) -> str:
    """The SQL that migrates from version `number - 1` to `number`."""
    for name in os.listdir(_FOLDER):
        if name.startswith(f"{number:04d}_"):
            with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
                return file.read()
    raise AssertionError(f"migration {number} is missing from the package")


PARTS: Final = (
    "event",
    "event_supplied_id",
    "event_owner",
    "location",
    "session",
    "session_created",
    "session_reverting",
    "session_parent",
    "session_message",
    "session_message_compaction",
    "session_input",
    "session_input_pending",
    "todo",
    "session_context_epoch",
    "session_instruction",
    "session_retry",
    "model_rest",
    "provider_request",
    "provider_request_provider",
    "session_attempt",
    "session_file_change",
    "session_file_change_session",
    "session_revert_file",
    "session_lease",
    "session_lease_process",
    "session_deletion",
    "session_interrupt",
    "process",
    "session_wake",
    "session_notice",
    "session_notice_pending",
    "job",
    "job_session",
    "job_running",
    "child_task",
    "child_task_session",
    "child_task_open",
    "approval",
    "approval_project",
    "pending_request",
    "pending_request_session",
    "mcp_tool_list",
    "mcp_server",
)
CURRENT: Final = Schema(SCHEMA_VERSION, read_migration, PARTS)


def migrate(path: str, schema: Schema = CURRENT) -> str | None:
    """Apply the missing migrations; returns the path of the backup copy, if one was made."""
    connection = sqlite_connection.open_connection(path)
    try:
        if _version(connection, path, schema) == schema.version:
            if missing := find_missing_parts(connection, schema):
                raise IncompleteDatabaseError(path, missing)
            return None
        with _migration_lock(path):
            return _apply_missing(connection, path, schema)
    except apsw.Error as error:
        raise sqlite_connection.translate_error(error, path) from error
    finally:
        connection.close()


def find_missing_parts(connection: Connection, schema: Schema = CURRENT) -> tuple[str, ...]:
    """The tables and indexes of the schema that the database lacks."""
    found = {name for (name,) in fetch_rows(connection, "SELECT name FROM sqlite_schema")}
    return tuple(name for name in schema.parts if name not in found)


def fetch_rows(connection: Connection, sql: str) -> Sequence[Row]:
    return cast("Sequence[Row]", connection.execute(sql).fetchall())


def _apply_missing(connection: Connection, path: str, schema: Schema) -> str | None:
    found = _version(connection, path, schema)
    # Not before the check above: a refused database keeps its own journal mode.
    sqlite_connection.configure(connection)
    backup = None
    if 0 < found < schema.version:
        backup = f"{path}.before-{schema.version}"
        copy_database(connection, backup)
    for number in range(found + 1, schema.version + 1):
        _apply(connection, number, schema.sql(number))
    return backup


def _apply(connection: Connection, number: int, sql: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(sql)
        connection.pragma("application_id", sqlite_connection.APPLICATION_ID)
        connection.pragma("user_version", number)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: Connection, path: str, schema: Schema) -> int:
    # In one read transaction: another process may be creating the tables at this moment.
    connection.execute("BEGIN")
    try:
        application = connection.pragma("application_id")
        tables = fetch_rows(connection, "SELECT 1 FROM sqlite_schema LIMIT 1")
        version = cast("int", connection.pragma("user_version"))
    finally:
        # SQLite has already ended the transaction when the disk failed.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if tables and application != sqlite_connection.APPLICATION_ID:
        raise ForeignDatabaseError(path)
    if version > schema.version:
        raise NewerDatabaseError(path, found=version, known=schema.version)
    return version


def copy_database(connection: Connection, target: str) -> None:
    """Copy all committed data to `target`, a file that only its owner may read."""
    os.close(os.open(target, os.O_RDWR | os.O_CREAT, 0o600))
    destination = apsw.Connection(target)
    try:
        with destination.backup("main", cast("apsw.Connection", connection), "main") as backup:
            backup.step()
    finally:
        destination.close()


@contextmanager
def _migration_lock(path: str) -> Generator[None]:
    handle = os.open(f"{path}.migrate-lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
