"""A provider that takes too long, and one that is only busy while the server is killed."""

import asyncio
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.support.api import PATIENCE_SECONDS
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Reply, ScriptedProvider, refusal, text
from tests.support.server_process import server_process


def configured(provider: ScriptedProvider, bounds: JsonObject) -> JsonObject:
    api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": provider.url}
    models: JsonObject = {"fake-model": {}}
    return {"providers": {"fake": {"api": api, "timeout": bounds, "models": models}}}


@pytest.mark.parametrize(
    ("bounds", "reply", "told"),
    [
        ({"first_byte": 0.1, "idle": 0}, Reply(pieces=(asyncio.Event(),)), "`first_byte`"),
        ({"first_byte": 0, "idle": 0.1}, text("half", hold=asyncio.Event()), "`idle`"),
    ],
    ids=["first byte", "idle"],
)
async def test_a_silence_that_is_too_long_fails_the_step_and_names_the_limit(
    tmp_path: Path, provider: ScriptedProvider, bounds: JsonObject, reply: Reply, told: str
) -> None:
    folders = make_folders(tmp_path, provider, **configured(provider, bounds))
    provider.then(reply)
    async with asyncio.timeout(PATIENCE_SECONDS), running(folders) as instance:
        api = instance.api
        session = await api.create()
        *_, failed = await api.ask(session, "go")
        assert failed["finish"] == "error"
        assert told in failed["error"]["message"]
        assert len(provider.requests) == 1
        *_, answer = await api.ask(session, "again")
        assert answer["content"][0]["text"] == "ok"


async def test_a_server_killed_while_it_waits_goes_on_waiting(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(refusal(529, retry_after_ms="1500"), text("back"))
    async with server_process(folders) as server:
        session = await server.api.create()
        async with asyncio.timeout(PATIENCE_SECONDS), server.api.events(session) as stream:
            await server.api.prompt(session, "go")
            *_, retried = await stream.until("retried")
        await server.kill()
    assert len(provider.requests) == 1
    async with server_process(folders, "restarted") as server:
        async with asyncio.timeout(PATIENCE_SECONDS), server.api.events(session) as stream:
            *_, ended = await stream.until("step.ended")
        assert ended["data"]["timestamp"] >= retried["data"]["next"]
        user, answer = await server.api.messages(session)
        assert (user["type"], answer["content"][0]["text"]) == ("user", "back")
    assert len(provider.requests) == 2
