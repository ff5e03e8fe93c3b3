"""Secrets of the server and of the user, through every tool that shows files, with all allowed."""

import os
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.approval.test_permissions import reply, waiting
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

TOKEN: Final = "canary-9911"
ANYTHING: Final[JsonObject] = {"action": "*", "resource": "*", "effect": "allow"}


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(tmp_path, provider)
    made.configure_user(permissions=[ANYTHING], username=TOKEN)
    made.data.mkdir(mode=0o700)
    (made.data / "auth.json").write_text(TOKEN)
    for name in ("id_ed25519", "other"):
        (tmp_path / "home" / ".ssh").mkdir(exist_ok=True)
        (tmp_path / "home" / ".ssh" / name).write_text(TOKEN)
    return made


async def told(api: Api, provider: ScriptedProvider, call: Call) -> str:
    provider.then(calls(call), text("done"))
    await api.ask(await api.create(agent="build"), "show it")
    return provider.requests[-1].texts("tool")[-1]


async def test_the_data_directory_is_shown_by_no_tool(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    data = str(folders.data)
    for path in (data, f"{data}/auth.json", f"/proc/self/root{data}/auth.json", f"{data}/new"):
        for call in (
            Call("read", {"path": path}),
            Call("grep", {"pattern": "canary", "path": path}),
            Call("glob", {"pattern": "*", "path": path}),
            Call("bash", {"command": "cat auth.json", "workdir": path}),
        ):
            said = await told(api, provider, call)
            assert "belongs to this program and cannot be read" in said, call


async def test_a_search_around_secrets_leaves_them_out(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    (folders.project / "mine.txt").write_text("canary of the project")
    around = str(folders.project.parent)
    said = await told(api, provider, Call("grep", {"pattern": "canary", "path": around}))
    assert TOKEN not in said
    assert "canary of the project" in said
    listed = await told(api, provider, Call("glob", {"pattern": "**/auth.json", "path": around}))
    assert f"{folders.data}/auth.json" not in listed


@pytest.mark.parametrize("name", ["home/.ssh/id_ed25519", "home/.config/opencode/opencode.json"])
@pytest.mark.parametrize("tool", ["read", "grep"])
async def test_places_with_keys_are_asked_about_each_time(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, name: str, tool: str
) -> None:
    path = str(folders.project.parent / name)
    words: JsonObject = {"path": path} if tool == "read" else {"path": path, "pattern": "canary"}
    provider.then(calls(Call(tool, words)), text("done"))
    session = await api.create(agent="build")
    await api.prompt(session, "show it")
    request = await waiting(api, session)
    assert (request["action"], request["resources"]) == ("read", [path])
    assert "save" not in request
    await reply(api, request, "reject", "no")
    await api.wait(session)
    assert TOKEN not in provider.requests[-1].raw.decode()


async def test_the_environment_of_the_server_is_asked_about(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("read", {"path": f"/proc/{os.getpid()}/status"})), text("done"))
    session = await api.create(agent="build")
    await api.prompt(session, "show it")
    await reply(api, await waiting(api, session), "reject", "no")
    await api.wait(session)


async def test_a_rule_that_names_a_place_lets_it_be_read(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    place = str(folders.project.parent / "home" / ".ssh")
    named: JsonObject = {"action": "read", "resource": f"{place}/other", "effect": "allow"}
    folders.configure_user(permissions=[ANYTHING, named])
    async with running(folders) as server:
        assert TOKEN in await told(server.api, provider, Call("read", {"path": f"{place}/other"}))
