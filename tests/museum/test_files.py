"""Files that are not what they should be: each opens or is refused in words, and nothing is lost.

A write-ahead log carries no name of the database it belongs to. One from elsewhere is the only
damage here that cannot be refused; what it leaves behind is found by `doctor`.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from perdure.ports import DatabaseError
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from tests.museum import old_databases
from tests.requirements import requirement
from tests.support import damage, database_check
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TABLES: Final = tuple(name for name in migrate.PARTS if name in {"session", "session_message"})
INDEXES: Final = ("session_created", "session_input_pending", "session_lease_process")
PAGE_BYTES: Final = 4_096
FRAME_BYTES: Final = 2_048 + 24


def no_database(path: Path) -> None:
    path.write_bytes(b"these are the notes of somebody else\n" * 200)


def marked(path: Path) -> None:
    path.write_bytes(BYTE_ORDER_MARK + path.read_bytes())


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def a_page_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size - PAGE_BYTES)


def only_a_head(path: Path) -> None:
    os.truncate(path, 100)


def foreign(path: Path) -> None:
    path.unlink()
    old_databases.execute(path, "CREATE TABLE theirs (x); PRAGMA user_version = 1")


@requirement("S150")
@pytest.mark.parametrize("spoil", [no_database, marked, halved, a_page_short, only_a_head, foreign])
async def test_a_file_that_cannot_be_used_is_refused_by_name_and_left_alone(
    folders: ProjectFolders, spoil: Callable[[Path], None]
) -> None:
    old_databases.set_up_exhibit(folders, migrate.SCHEMA_VERSION)
    spoil(folders.database)
    before = old_databases.files(folders.data)
    for command in (("sessions",), ("serve", "--port", "0"), ("doctor", "--repair")):
        ran = await old_databases.perdure(folders, *command)
        assert ran.status == 1, command
        assert str(folders.database) in ran.errors
        assert "Traceback" not in ran.errors
    doctor = await old_databases.perdure(folders, "doctor")
    assert (doctor.status, "! database" in doctor.output) == (1, True)
    assert {name: old_databases.files(folders.data)[name] for name in before} == before


async def test_an_empty_file_is_a_new_database(folders: ProjectFolders) -> None:
    folders.data.mkdir(mode=0o700)
    folders.database.touch()
    async with running(folders) as instance:
        assert await instance.api.create()
    await database_check.check(folders.database)


@requirement("S150")
@pytest.mark.parametrize("part", [*TABLES, *INDEXES])
async def test_a_missing_part_is_named_and_made_anew_from_the_log(
    folders: ProjectFolders, provider: ScriptedProvider, part: str
) -> None:
    pair = await old_databases.conversations(folders, provider)
    before = database_check.dump(folders.database)
    kind = "TABLE" if part in TABLES else "INDEX"
    old_databases.execute(folders.database, f"DROP {kind} {part}")
    with pytest.raises(DatabaseError, match=rf"lacks {part}.*doctor --repair"):
        migrate.migrate(str(folders.database))
    assert (await old_databases.perdure(folders, "doctor")).status == 1
    repaired = await old_databases.perdure(folders, "doctor", "--repair")
    assert (repaired.status, part in repaired.output) == (0, True), repaired.output
    assert database_check.dump(folders.database) == before
    async with running(folders) as instance:
        assert await instance.api.messages(pair.hurt)
        await instance.api.wait(pair.hurt)


@requirement("S150")
@pytest.mark.parametrize("table", ["session", "session_message", "session_input"])
async def test_a_damaged_page_is_found_and_its_rows_are_made_anew_from_the_log(
    folders: ProjectFolders, provider: ScriptedProvider, table: str
) -> None:
    await old_databases.conversations(folders, provider)
    before = database_check.dump(folders.database)
    damage.overwrite_page(folders.database, damage.root_page(folders.database, table))
    assert (await old_databases.perdure(folders, "doctor")).status == 1
    repaired = await old_databases.perdure(folders, "doctor", "--repair")
    assert (repaired.status, "recovered" in repaired.output) == (0, True), repaired.output
    assert f"{table}: 0 rows, 1 damaged places" in repaired.output
    assert database_check.dump(folders.database) == before
    assert [path.name for path in folders.data.glob("*before*")] == ["perdure.db.before-repair"]


async def test_a_database_in_use_is_not_repaired(folders: ProjectFolders) -> None:
    async with running(folders):
        ran = await old_databases.perdure(folders, "doctor", "--repair")
    assert (ran.status, "Another process uses" in ran.errors) == (1, True)


async def test_a_database_without_its_log_is_beyond_repair_and_left_alone(
    folders: ProjectFolders,
) -> None:
    old_databases.set_up_exhibit(folders, migrate.SCHEMA_VERSION)
    old_databases.execute(folders.database, "DROP TABLE event")
    ran = await old_databases.perdure(folders, "doctor", "--repair")
    assert (ran.status, "from a backup" in ran.errors) == (1, True)
    assert not list(folders.data.glob("*before*"))


@requirement("S150")
@pytest.mark.parametrize("frames", [0, 1, 7, -2, -1])
async def test_what_a_cut_write_ahead_log_still_holds_is_read_without_a_gap(
    tmp_path: Path, folders: ProjectFolders, provider: ScriptedProvider, frames: int
) -> None:
    """As a machine leaves it that lost power: the file, and the beginning of what came after."""
    await crashed_copy(folders, provider, tmp_path / "crashed")
    whole = (tmp_path / "crashed" / "perdure.db-wal").read_bytes()
    count = (len(whole) - 32) // FRAME_BYTES
    assert count > 8
    kept = frames if frames >= 0 else count + frames
    # In the middle of a frame: that one does not count.
    (tmp_path / "crashed" / "perdure.db-wal").write_bytes(whole[: 32 + kept * FRAME_BYTES + 99])
    crashed = tmp_path / "crashed" / "perdure.db"
    migrate.migrate(str(crashed))
    await database_check.check(crashed)


async def test_a_write_ahead_log_of_another_database_is_found_by_the_doctor(
    tmp_path: Path, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    await crashed_copy(folders, provider, tmp_path / "theirs")
    shutil.rmtree(folders.data)
    old_databases.set_up_exhibit(folders, migrate.SCHEMA_VERSION)
    wal = (tmp_path / "theirs" / "perdure.db-wal").read_bytes()
    Path(f"{folders.database}-wal").write_bytes(wal)
    ran = await old_databases.perdure(folders, "doctor")
    assert ran.status == 1, ran.output
    assert "Traceback" not in ran.errors
    listed = await old_databases.perdure(folders, "sessions")
    assert "Traceback" not in listed.errors


async def crashed_copy(folders: ProjectFolders, provider: ScriptedProvider, target: Path) -> None:
    """The data directory as it is while a process has it open: most of it in the log beside."""
    migrate_first(folders)
    reader = sqlite_connection.open_connection(str(folders.database))
    try:
        # A reader keeps everything that is written from now on out of the file itself.
        reader.execute("BEGIN; SELECT count(*) FROM session")
        await old_databases.conversations(folders, provider)
        shutil.copytree(folders.data, target)
    finally:
        reader.close()
    (target / "perdure.db-shm").unlink(missing_ok=True)


def migrate_first(folders: ProjectFolders) -> None:
    folders.data.mkdir(mode=0o700)
    migrate.migrate(str(folders.database))
