"""What is unusual about a permission request is said in words, to every client."""

from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

ASK_BASH = {"action": "bash", "resource": "*", "effect": "ask"}


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider, permissions=[ASK_BASH])


async def ask_for(api: Api, provider: ScriptedProvider, command: str) -> tuple[str, JsonObject]:
    """A Session whose model calls bash, and the request that its call waits for."""
    provider.then(calls(Call("bash", {"command": command})), text("done"))
    session = await api.create()
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        return session, (await live.until("permission.v2.asked"))[-1]["data"]


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("echo one\necho two", "the command has 2 lines"),
        ("echo one # and\rtouch two", "it has a comment"),
        ("echo one\u202eowt", "characters that cannot be seen"),
        ("echo one" + " " * 40 + "; touch two", "long runs of blanks"),
        ("eval $(cat plan)", "it is not certain what it runs"),
    ],
)
async def test_what_could_be_overlooked_is_named(
    provider: ScriptedProvider, folders: ProjectFolders, command: str, note: str
) -> None:
    async with running(folders) as instance:
        session, asked = await ask_for(instance.api, provider, command)
        (listed,) = (await instance.api.get(f"/api/session/{session}/permission"))["data"]
        (first,) = await instance.api.get("/permission")
        assert any(note in each for each in asked["notes"])
        assert listed["notes"] == first["metadata"]["notes"] == asked["notes"]


async def test_a_plain_command_has_no_notes(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    async with running(folders) as instance:
        _, asked = await ask_for(instance.api, provider, "echo plain")
        assert "notes" not in asked
