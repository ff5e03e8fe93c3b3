"""Bringing a database to the current schema, and leaving alone what is not ours."""

import asyncio
import stat
from pathlib import Path

import pytest

from perdure.ports import DatabaseError
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.migrate import ForeignDatabaseError, NewerDatabaseError, Schema
from tests.fixtures import child, line
from tests.requirements import requirement

SECOND = "CREATE TABLE added (name TEXT); INSERT INTO added SELECT id FROM session"


def sql(number: int) -> str:
    return migrate.read_migration(number) if number <= migrate.SCHEMA_VERSION else SECOND


NEXT = Schema(migrate.SCHEMA_VERSION + 1, sql)


def unread(number: int) -> str:
    raise AssertionError(f"read the SQL of version {number}")


def version(path: Path) -> object:
    connection = sqlite_connection.open_connection(str(path))
    try:
        return connection.pragma("user_version")
    finally:
        connection.close()


def schema_of(path: Path) -> list[object]:
    connection = sqlite_connection.open_connection(str(path))
    try:
        found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name")
        return list(found.fetchall())
    finally:
        connection.close()


def foreign(path: Path, *, user_version: int = 0) -> bytes:
    connection = sqlite_connection.open_connection(str(path))
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    connection.execute(f"PRAGMA user_version = {user_version}")
    connection.close()
    return path.read_bytes()


def test_a_new_database_is_made_current_and_ours(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    assert migrate.migrate(str(path)) is None
    assert version(path) == migrate.SCHEMA_VERSION
    connection = sqlite_connection.open_connection(str(path))
    assert connection.pragma("application_id") == sqlite_connection.APPLICATION_ID
    assert connection.pragma("journal_mode") == "wal"
    connection.close()


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    path.touch()
    assert migrate.migrate(str(path)) is None
    assert version(path) == migrate.SCHEMA_VERSION


def test_a_database_that_is_up_to_date_reads_no_sql(tmp_path: Path) -> None:
    path = str(tmp_path / "p.db")
    migrate.migrate(path)
    assert migrate.migrate(path, Schema(migrate.SCHEMA_VERSION, unread)) is None


@pytest.mark.parametrize("user_version", [0, 1, 2, 99])
def test_a_database_of_another_program_is_refused_and_not_touched(
    tmp_path: Path, user_version: int
) -> None:
    path = tmp_path / "theirs.db"
    before = foreign(path, user_version=user_version)
    with pytest.raises(ForeignDatabaseError, match="another program"):
        migrate.migrate(str(path))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs.db"]


def test_a_database_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    migrate.migrate(str(path), NEXT)
    before = path.read_bytes()
    with pytest.raises(NewerDatabaseError, match="Upgrade perdure"):
        migrate.migrate(str(path))
    assert path.read_bytes() == before


@requirement("S150")
def test_an_older_database_is_copied_and_then_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    migrate.migrate(str(path))
    connection = sqlite_connection.connect(str(path))
    connection.execute(
        "INSERT INTO session (id, project_id, directory, subpath, title, time_created, data)"
        " VALUES ('ses_old', 'global', '/', '', 't', 1, x'7b7d')"
    )
    connection.close()
    backup = migrate.migrate(str(path), NEXT)
    assert backup is not None
    assert backup == f"{path}.before-{NEXT.version}"
    assert stat.S_IMODE(Path(backup).stat().st_mode) == 0o600
    assert version(Path(backup)) == migrate.SCHEMA_VERSION
    assert version(path) == NEXT.version
    for file, query in ((backup, "SELECT id FROM session"), (str(path), "SELECT name FROM added")):
        connection = sqlite_connection.open_connection(file)
        assert connection.execute(query).fetchall() == [("ses_old",)]
        connection.close()
    assert migrate.migrate(str(path), Schema(NEXT.version, unread)) is None


@requirement("S150")
def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    migrate.migrate(str(path))
    before = schema_of(path)
    broken = Schema(NEXT.version, lambda _: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(DatabaseError, match="nowhere"):
        migrate.migrate(str(path), broken)
    assert (version(path), schema_of(path)) == (migrate.SCHEMA_VERSION, before)
    assert migrate.migrate(str(path), NEXT) is not None


async def test_processes_that_start_together_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    children = [await child("tests.contract.store.starter", str(path)) for _ in range(4)]
    for process in children:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
    assert [await line(process) for process in children] == ["None"] * 4
    async with asyncio.timeout(20):
        assert [await process.wait() for process in children] == [0] * 4
    assert version(path) == migrate.SCHEMA_VERSION


def test_every_version_has_its_file_and_the_files_have_no_gap() -> None:
    for number in range(1, migrate.SCHEMA_VERSION + 1):
        assert migrate.read_migration(number).strip().endswith(";")
    with pytest.raises(AssertionError, match="missing"):
        migrate.read_migration(migrate.SCHEMA_VERSION + 1)
