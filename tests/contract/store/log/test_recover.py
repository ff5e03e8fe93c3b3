"""A database with a damaged page: what can be read is saved, and what is lost is said."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from perdure.ports import DatabaseError
from perdure.store import migrate
from perdure.store.database import sqlite_connection
from perdure.store.log import repair
from tests.support import damage, database_check
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import scripted_provider

_SESSIONS = 6
_PROMPTS = 8


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """A database with a few Sessions, of which no process is open."""
    async with scripted_provider() as provider:
        folders = make_folders(tmp_path / "machine", provider)
        async with running(folders) as instance:
            for _ in range(_SESSIONS):
                session = await instance.api.create()
                for number in range(_PROMPTS):
                    text = f"prompt {number} " * 20
                    await instance.api.prompt(session, text, resume=False)
    kept = tmp_path / "perdure.db"
    shutil.copy(folders.database, kept)
    return kept


def is_sound(path: Path) -> bool:
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        return connection.pragma("integrity_check") == "ok"


def has_schema(path: Path) -> bool:
    """Whether SQLite can find any table: the names of all are on the first pages."""
    with closing(sqlite_connection.open_connection(str(path))) as connection:
        try:
            connection.execute("SELECT 1 FROM event LIMIT 0")
        except apsw.CorruptError:
            return False
    return True


async def test_whichever_page_is_damaged_the_rest_is_saved_and_nothing_is_made_up(
    database: Path, tmp_path: Path
) -> None:
    before = database_check.dump(database)
    pages = database.stat().st_size // damage.page_bytes(database)
    roots = {damage.root_page(database, name) for name in before if before[name]}
    damaged = tmp_path / "damaged.db"
    unharmed = 0
    for page in range(2, pages + 1):
        shutil.copy(database, damaged)
        damage.overwrite_page(damaged, page)
        spoiled = damaged.read_bytes()
        if not has_schema(damaged):
            with pytest.raises(DatabaseError, match="Restore the data directory from a backup"):
                await repair.repair(str(damaged))
            assert damaged.read_bytes() == spoiled
            Path(f"{damaged}.before-repair").unlink()
            continue
        report = await repair.repair(str(damaged))
        assert is_sound(damaged)
        after = database_check.dump(damaged)
        assert set(after["event"]) <= set(before["event"]), page
        if page not in roots:
            assert len(after["event"]) >= len(before["event"]) - 20, page
        lost = {row[0] for row in set(before["event"]) - set(after["event"])}
        log = [table for table in report.recovered if table.name == "event"]
        assert not lost or log[0].damaged_places
        for error in report.remaining:
            assert error.session_id in lost
        unharmed += not lost
        assert Path(report.backup).read_bytes() == spoiled or is_sound(Path(report.backup))
        Path(report.backup).unlink()
    # Most pages are those of indexes, projections and free space.
    assert unharmed > pages // 2


async def test_without_its_first_page_a_database_cannot_be_repaired_and_is_left_alone(
    database: Path,
) -> None:
    size = damage.page_bytes(database)
    with database.open("r+b") as file:
        file.write(b"\xa5" * size)
    spoiled = database.read_bytes()
    with pytest.raises(DatabaseError, match="Restore the data directory from a backup"):
        await repair.repair(str(database))
    assert database.read_bytes() == spoiled


async def test_a_sound_database_is_copied_and_stays_as_it_is(database: Path) -> None:
    before = database_check.dump(database)
    report = await repair.repair(str(database))
    assert (report.recovered, report.created, report.remaining) == ((), (), ())
    assert database_check.dump(database) == before
    assert migrate.migrate(str(database)) is None
