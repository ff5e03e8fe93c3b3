"""A subagent outlives the process of its parent's call, and its result is told exactly once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.approval.test_permissions import tool_states
from tests.acceptance.session_scripts import SessionScripts, task
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, calls, text
from tests.support.server_process import ServerProcess, server_process


@pytest.fixture
def scripts(provider: ScriptedProvider) -> SessionScripts:
    return SessionScripts(provider)


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    # A request that a crash cut off is made again, without asking anybody.
    return recovering(make_folders(tmp_path, provider), "retry")


def recovering(folders: ProjectFolders, policy: str) -> ProjectFolders:
    """What the user wants to happen after a crash; a project cannot say it."""
    own = Path(folders.variables["HOME"]) / ".config" / "opencode"
    own.mkdir(parents=True)
    (own / "opencode.json").write_bytes(codec.encode({"experimental": {"recovery": policy}}))
    return folders


async def child_of(api: Api, session: str) -> JsonObject:
    (child,) = (await api.get(f"/api/session/{session}/children"))["data"]
    return child


async def notices(api: Api, session: str) -> list[str]:
    """What a Session was told by the runtime, once it was told something."""
    async with api.events(session) as stream:
        await stream.until("synthetic")
    await api.wait(session)
    messages = await api.messages(session)
    return [message["text"] for message in messages if message["type"] == "synthetic"]


def task_states_of(folders: ProjectFolders) -> list[str]:
    return sorted(str(row[-1]) for row in database_check.dump(folders.database)["child_task"])


async def test_after_a_crash_the_child_goes_on_and_its_parent_is_told_once(
    folders: ProjectFolders, scripts: SessionScripts
) -> None:
    never = asyncio.Event()
    scripts.add("root", calls(task("dig")), text("so be it"), text("thank you"))
    scripts.add("dig", text("I ", hold=never), text("a hole"))
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "root")
        await scripts.provider.arrived(2)
        child = await child_of(server.api, session)
        await server.kill()
    for name in ("second", "third"):
        async with server_process(folders, name) as server:
            (told,) = await notices(server.api, session)
            (state,) = await tool_states(server.api, session)
            assert state["error"]["message"].startswith("Tool execution interrupted")
            assert child["id"] in told
            assert await child_of(server.api, session) | {"time": 0, "cost": 0, "tokens": 0} == (
                child | {"time": 0, "cost": 0, "tokens": 0}
            )
    assert task_states_of(folders) == ["delivered"]
    await database_check.check(folders.database)


async def test_a_child_that_the_crash_left_failed_is_told_as_failed(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = recovering(make_folders(tmp_path, provider), "abandon")
    scripts, never = SessionScripts(provider), asyncio.Event()
    scripts.add("root", calls(task("dig")))
    scripts.add("dig", text("I ", hold=never))
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "root")
        await scripts.provider.arrived(2)
        await server.kill()
    async with server_process(folders, "second") as server:
        (told,) = await notices(server.api, session)
        assert "state: failed" in told


async def test_stopping_a_server_leaves_a_child_to_the_next_one(
    folders: ProjectFolders, scripts: SessionScripts
) -> None:
    never = asyncio.Event()
    scripts.add("root", calls(task("dig")))
    scripts.add("dig", text("I ", hold=never), text("a hole"))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.prompt(session, "root")
        await scripts.provider.arrived(2)
    assert task_states_of(folders) == ["waiting"]
    async with running(folders) as instance:
        assert len(await notices(instance.api, session)) == 1
    assert task_states_of(folders) == ["delivered"]


@asynccontextmanager
async def child_elsewhere(
    folders: ProjectFolders, scripts: SessionScripts, hold: asyncio.Event
) -> AsyncGenerator[tuple[str, ServerProcess, ServerProcess]]:
    """A parent that waits in one server for a child that another one runs, until `hold` is set."""
    scripts.add("root", calls(task("dig")), text("fine"))
    scripts.add("dig", text("a hole"), text("swept"), text("a deeper hole", hold=hold))
    async with server_process(folders, "first") as first:
        session = await first.api.create()
        await first.api.ask(session, "root")
        child = await child_of(first.api, session)
    async with server_process(folders, "childs") as childs, server_process(folders, "own") as own:
        await childs.api.ask(child["id"], "sweep it")
        scripts.add("root", calls(task("deeper", task_id=child["id"])), text("I see"))
        await own.api.prompt(session, "again")
        await scripts.provider.arrived(6)
        yield session, own, childs


async def test_a_child_that_another_server_runs_is_waited_for(
    folders: ProjectFolders, scripts: SessionScripts
) -> None:
    hold = asyncio.Event()
    async with child_elsewhere(folders, scripts, hold) as (session, own, _):
        hold.set()
        await own.api.wait(session)
        _, state = await tool_states(own.api, session)
        assert "a deeper hole" in state["content"][0]["text"]
    assert task_states_of(folders) == ["delivered", "delivered"]


async def test_a_parent_that_died_is_told_by_the_server_that_runs_its_child(
    folders: ProjectFolders, scripts: SessionScripts
) -> None:
    hold = asyncio.Event()
    async with child_elsewhere(folders, scripts, hold) as (session, own, childs):
        await own.kill()
        hold.set()
        (told,) = await notices(childs.api, session)
        assert "a deeper hole" in told
    assert task_states_of(folders) == ["delivered", "delivered"]


async def test_interrupting_a_parent_stops_a_child_that_another_server_runs(
    folders: ProjectFolders, scripts: SessionScripts
) -> None:
    async with child_elsewhere(folders, scripts, asyncio.Event()) as (session, own, _):
        child = await child_of(own.api, session)
        await own.api.post(f"/api/session/{session}/interrupt")
        *_, last = await own.api.messages(child["id"])
        assert last["error"]["message"] == "Provider turn interrupted"
    assert task_states_of(folders) == ["abandoned", "delivered"]
