"""Bringing a database to the current schema: numbered SQL files, forward only.

Each file is one transaction. Processes that start together take turns on a lock file and look
again once they hold it. A database that already has data is copied before it is changed.
`PRAGMA user_version` is the number of the last file applied, so an up-to-date start reads none.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Final, cast

import apsw

from perdure.ports import DatabaseError
from perdure.store.database import sqlite

SCHEMA_VERSION: Final = 1


class ForeignDatabaseError(DatabaseError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is a database of another program. Choose another --data-dir"
            " (or PERDURE_DATA_DIR); nothing was changed."
        )


class NewerDatabaseError(DatabaseError):
    def __init__(self, path: str, found: int) -> None:
        super().__init__(
            f"{path} was written by a newer perdure (schema {found}, this one knows"
            f" {SCHEMA_VERSION}). Upgrade perdure; nothing was changed."
        )


def migrate(path: str) -> str | None:
    """Apply what is missing; the path of the backup copy, if one was made."""
    connection = sqlite.connect(path)
    try:
        if _version(connection, path) == SCHEMA_VERSION:
            return None
        with _turn(path):
            return _apply_missing(connection, path)
    finally:
        connection.close()


def apply_all(connection: apsw.Connection) -> None:
    """Make an empty database current; for databases in memory."""
    for number in range(1, SCHEMA_VERSION + 1):
        _apply(connection, number)


def _apply_missing(connection: apsw.Connection, path: str) -> str | None:
    found = _version(connection, path)
    backup = None
    if 0 < found < SCHEMA_VERSION:
        backup = f"{path}.before-{SCHEMA_VERSION}"
        _copy(connection, backup)
    for number in range(found + 1, SCHEMA_VERSION + 1):
        _apply(connection, number)
    return backup


def _apply(connection: apsw.Connection, number: int) -> None:
    with connection:
        connection.execute(_sql(number))
        connection.pragma("application_id", sqlite.APPLICATION_ID)
        connection.pragma("user_version", number)


def _version(connection: apsw.Connection, path: str) -> int:
    version = cast("int", connection.pragma("user_version"))
    if version > SCHEMA_VERSION:
        raise NewerDatabaseError(path, version)
    application = cast("int", connection.pragma("application_id"))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if tables and application != sqlite.APPLICATION_ID:
        raise ForeignDatabaseError(path)
    return version


def _sql(number: int) -> str:
    folder = resources.files("perdure.store.migrations")
    for entry in folder.iterdir():
        if entry.name.startswith(f"{number:04d}_"):
            return entry.read_text(encoding="utf-8")
    raise AssertionError(f"migration {number} is missing from the package")


def _copy(connection: apsw.Connection, target: str) -> None:
    copy = apsw.Connection(target)
    try:
        os.chmod(target, 0o600)
        with copy.backup("main", connection, "main") as backup:
            backup.step()
    finally:
        copy.close()


@contextmanager
def _turn(path: str) -> Iterator[None]:
    if path == ":memory:":
        yield
        return
    handle = os.open(f"{path}.migrate-lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
