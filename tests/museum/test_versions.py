"""Databases of every version there has been: they open, keep every word, and go on."""

import re
from pathlib import Path
from typing import Final

import pytest

from perdure.schema import manifest
from perdure.store import migrate
from tests.museum import old_databases
from tests.requirements import requirement
from tests.support import database_check
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text

VERSIONS: Final = range(1, migrate.SCHEMA_VERSION + 1)
FULL: Final = "ses_museum_full"
WAITING: Final = "ses_museum_waiting"
EXHIBITED_EVENTS: Final = re.compile(r"'(session\.[a-z.]+\.\d+)'")


@requirement("S150")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_database_of_each_version_keeps_every_word(
    folders: ProjectFolders, provider: ScriptedProvider, version: int
) -> None:
    old_databases.set_up_exhibit(folders, version)
    before = database_check.dump(folders.database)
    async with running(folders) as instance:
        api = instance.api
        await api.wait(WAITING)
        sessions = (await api.get("/api/session"))["data"]
        assert {session["id"] for session in sessions} == {FULL, WAITING}
        told = [(m["type"], m.get("text")) for m in await api.messages(FULL)]
        assert ("user", "And in other words? ☃") in told
        seqs = [event["durable"]["seq"] for event in await api.history(FULL)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert provider.requests_with("Later") == 1
    after = database_check.dump(folders.database)
    assert set(before["event"]) <= set(after["event"])
    await database_check.check(folders.database)


@requirement("S150")
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_conversation_of_each_version_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider, version: int
) -> None:
    old_databases.set_up_exhibit(folders, version)
    async with running(folders) as instance:
        await instance.api.wait(WAITING)
        provider.then(text("gladly"))
        messages = await instance.api.ask(FULL, "Go on.")
    assert messages[-1]["content"][0]["text"] == "gladly"
    assert "And in other words? ☃" in provider.requests[-1].texts("user")
    await database_check.check(folders.database)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_that_led_to_a_version_never_change(
    folders: ProjectFolders, tmp_path: Path, version: int
) -> None:
    old_databases.set_up_exhibit(folders, version)
    made = tmp_path / "made.db"
    migrate.migrate(str(made), migrate.Schema(version, migrate.read_migration))
    schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
    assert old_databases.fetch(folders.database, schema) == old_databases.fetch(made, schema)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_event_that_was_ever_stored_is_still_known(version: int) -> None:
    script = (old_databases.EXHIBITS / f"version_{version:04d}.sql").read_text(encoding="utf-8")
    stored = set(EXHIBITED_EVENTS.findall(script))
    assert len(stored) > 15
    assert stored <= set(manifest.BY_STORED) | set(manifest.UPCASTS)


def test_what_is_looked_for_at_the_start_is_what_a_new_database_has(tmp_path: Path) -> None:
    made = tmp_path / "made.db"
    migrate.migrate(str(made))
    names = old_databases.fetch(made, "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL")
    assert sorted(str(name) for (name,) in names) == sorted(migrate.PARTS)


async def test_a_newer_database_is_refused_by_name_with_the_remedy_and_left_alone(
    folders: ProjectFolders,
) -> None:
    old_databases.set_up_exhibit(folders, migrate.SCHEMA_VERSION)
    old_databases.execute(folders.database, f"PRAGMA user_version = {migrate.SCHEMA_VERSION + 1}")
    before = old_databases.files(folders.data)
    for command in (("serve", "--port", "0"), ("sessions",), ("run", "hello")):
        ran = await old_databases.perdure(folders, *command)
        assert ran.status == 1
        assert str(folders.database) in ran.errors
        assert "Upgrade perdure" in ran.errors
        assert "Traceback" not in ran.errors
    doctor = await old_databases.perdure(folders, "doctor")
    assert (doctor.status, "! schema" in doctor.output) == (1, True)
    refused = await old_databases.perdure(folders, "doctor", "--repair")
    assert (refused.status, "Upgrade perdure" in refused.errors) == (1, True)
    left = old_databases.files(folders.data)
    assert {name: left[name] for name in before} == before
    assert not [name for name in left if "before" in name]
