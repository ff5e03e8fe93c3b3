"""A prompt is acknowledged only while it is stored in the files that a start will read."""

import os
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from perdure.host.data_directory import DataDirectoryError
from tests.support import damage
from tests.support.api import Answer, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(tmp_path, provider)
    # The data directory is reached through a link, which may be changed to lead elsewhere.
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    if made.data.exists():
        made.data.rmdir()
    made.data.symlink_to(real)
    return made


@pytest.fixture
async def instance(folders: ProjectFolders) -> AsyncGenerator[Instance]:
    # Some tests leave no log behind.
    async with running(folders, damaged=True) as opened:
        yield opened


async def prompt(api: Api, session: str, id: str) -> Answer:
    body = {"prompt": {"text": "store this"}, "id": id, "resume": False}
    return await api.call("POST", f"/api/session/{session}/prompt", body)


Restore = Callable[[], object]


def rename(path: Path) -> Restore:
    aside = path.with_name("aside")
    path.rename(aside)
    return lambda: aside.rename(path)


def rename_database(folders: ProjectFolders) -> Restore:
    return rename(folders.database)


def rename_log(folders: ProjectFolders) -> Restore:
    return rename(Path(f"{folders.database}-wal"))


def rename_directory(folders: ProjectFolders) -> Restore:
    return rename(folders.data.resolve())


def redirect_link(folders: ProjectFolders) -> Restore:
    real, other = folders.data.resolve(), folders.data.with_name("other")
    shutil.copytree(real, other)
    folders.data.unlink()
    folders.data.symlink_to(other)

    def restore() -> None:
        folders.data.unlink()
        folders.data.symlink_to(real)

    return restore


def restore_backup(folders: ProjectFolders) -> Restore:
    """Another file takes the place of the database, as with `mv backup perdure.db`."""
    put_back = rename(folders.database)
    shutil.copy(folders.database.with_name("aside"), folders.database)
    return put_back


def link_to_itself(folders: ProjectFolders) -> Restore:
    put_back = rename(folders.database)
    folders.database.symlink_to(folders.database)

    def restore() -> None:
        folders.database.unlink()
        put_back()

    return restore


LOSSES: Final[Mapping[str, Callable[[ProjectFolders], Restore]]] = {
    made.__name__: made
    for made in (
        rename_database,
        rename_log,
        rename_directory,
        redirect_link,
        restore_backup,
        link_to_itself,
    )
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_while_the_files_are_lost_prompts_are_refused_and_afterwards_admitted(
    instance: Instance, loss: str
) -> None:
    api, folders = instance.api, instance.folders
    session = await api.create()
    assert (await prompt(api, session, "msg_1")).status == 200
    restore = LOSSES[loss](folders)
    for name in ("msg_2", "msg_2", "msg_3"):
        refused = await prompt(api, session, name)
        assert (refused.status, refused.tag) == (507, "StorageError")
        assert str(folders.data) in refused.json["message"]
    # A receipt of before is not given again either: it would promise what no start will find.
    assert (await prompt(api, session, "msg_1")).status == 507
    assert (await api.call("POST", "/api/session", {})).status == 507
    assert (await api.get("/api/health")) == {"healthy": False}
    [problem] = (await api.get("/api/health/detail"))["problems"]
    assert "while it was in use" in problem
    assert (await api.call("GET", f"/api/session/{session}")).status == 200
    restore()
    assert (await api.get("/api/health")) == {"healthy": True}
    for name in ("msg_1", "msg_2", "msg_3"):
        assert (await prompt(api, session, name)).status == 200
    assert await api.facts(session) == ["prompt.admitted"] * 3


REMOVALS: Final[Mapping[str, Callable[[ProjectFolders], object]]] = {
    "removed": lambda folders: folders.database.unlink(),
    "emptied": lambda folders: os.truncate(folders.database, 0),
    "log removed": lambda folders: os.unlink(f"{folders.database}-wal"),
    "directory removed": lambda folders: shutil.rmtree(folders.data.resolve()),
}


@pytest.mark.parametrize("loss", REMOVALS)
async def test_what_is_gone_for_good_is_not_written_to(instance: Instance, loss: str) -> None:
    api = instance.api
    session = await api.create()
    assert (await prompt(api, session, "msg_1")).status == 200
    REMOVALS[loss](instance.folders)
    for name in ("msg_1", "msg_2", "msg_3"):
        refused = await prompt(api, session, name)
        assert (refused.status, refused.tag) == (507, "StorageError")
    assert (await api.get("/api/health")) == {"healthy": False}


async def test_lost_shared_memory_is_told_by_health(instance: Instance) -> None:
    restore = rename(Path(f"{instance.folders.database}-shm"))
    assert (await instance.api.get("/api/health")) == {"healthy": False}
    restore()
    assert (await instance.api.get("/api/health")) == {"healthy": True}


async def test_what_was_acknowledged_is_in_the_file_after_a_restart(
    folders: ProjectFolders,
) -> None:
    async with running(folders) as first:
        session = await first.api.create()
        accepted = [await prompt(first.api, session, name) for name in ("msg_1", "msg_2")]
        restore = LOSSES["redirect_link"](folders)
        accepted += [await prompt(first.api, session, name) for name in ("msg_3", "msg_4")]
        assert [answer.status for answer in accepted] == [200, 200, 507, 507]
    async with running(folders) as second:
        assert (await second.api.facts(session)).count("prompt.admitted") == 2
    restore()


async def test_an_empty_database_in_a_used_directory_is_no_new_one(
    folders: ProjectFolders,
) -> None:
    async with running(folders) as first:
        await first.api.create()
    os.truncate(folders.database, 0)
    with pytest.raises(DataDirectoryError, match="used before"):
        async with running(folders):
            pass
    assert folders.database.stat().st_size == 0
    # The message says how to begin anew.
    folders.database.unlink()
    async with running(folders) as second:
        assert (await second.api.get("/api/session"))["data"] == []


@pytest.mark.parametrize("state", ["missing", "empty"])
async def test_a_log_without_its_database_is_not_deleted(
    folders: ProjectFolders, state: str
) -> None:
    log = Path(f"{folders.database}-wal")
    async with running(folders) as first:
        await first.api.create()
        shutil.copy(log, folders.data / "kept")
    os.rename(folders.data / "kept", log)
    size = log.stat().st_size
    if state == "missing":
        folders.database.unlink()
    else:
        os.truncate(folders.database, 0)
    with pytest.raises(DataDirectoryError, match=rf"{state}, but its log .* holds {size} bytes"):
        async with running(folders):
            pass
    assert log.stat().st_size == size


async def test_a_damaged_page_is_a_declared_error_with_the_remedy(
    folders: ProjectFolders,
) -> None:
    async with running(folders) as first:
        session = await first.api.create()
        for number in range(40):
            assert (await prompt(first.api, session, f"msg_{number}")).status == 200
    damage.overwrite_page(folders.database, damage.root_page(folders.database, "event"))
    async with running(folders, damaged=True) as second:
        answer = await second.api.call("GET", f"/api/session/{session}/history")
        assert (answer.status, answer.tag) == (507, "StorageError")
        assert "perdure doctor --repair" in answer.json["message"]
