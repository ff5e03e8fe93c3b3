"""A run that was cut goes on, after a kill in a tool or in an answer and after a stop."""

import asyncio
import os
from pathlib import Path

import pytest

from perdure.core.session import recovery
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

COMMAND = "echo ran >> effects; echo up > started; while [ ! -e released ]; do sleep 0.1; done"


def configure(folders: ProjectFolders, policy: str) -> None:
    """The user's own policy for what may have been paid."""
    path = folders.project.parent / "home" / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"experimental": {{"recovery": "{policy}"}}}}')


def tool_parts(messages: list[JsonObject]) -> list[JsonObject]:
    return [
        part
        for message in messages
        if message["type"] == "assistant"
        for part in message["content"]
        if part["type"] == "tool"
    ]


def answers(messages: list[JsonObject]) -> list[str]:
    return [
        part["text"]
        for message in messages
        if message["type"] == "assistant"
        for part in message["content"]
        if part["type"] == "text"
    ]


async def started(folders: ProjectFolders) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.to_thread((folders.project / "started").read_text)


async def settled(api: Api, session: str) -> list[JsonObject]:
    """The messages once nothing runs, with no prompt and no decision of a client."""
    async with asyncio.timeout(PATIENCE_SECONDS), api.events(session) as stream:
        events = await stream.until("step.ended")
        while events[-1]["data"]["finish"] == "tool-calls":
            events = await stream.until("step.ended")
    await api.wait(session)
    return await api.messages(session)


@requirement("S70", "S189")
@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_run_that_was_cut_in_a_command_goes_on_and_the_model_knows(
    folders: ProjectFolders, provider: ScriptedProvider, end: str
) -> None:
    os.mkfifo(folders.project / "started")
    provider.then(calls(Call("bash", {"command": COMMAND})), text("I see"))
    if end == "kill":
        async with server_process(folders, "first") as server:
            session = await server.api.create()
            await server.api.prompt(session, "run")
            await started(folders)
            await server.kill()
    else:
        async with running(folders) as instance:
            session = await instance.api.create()
            await instance.api.prompt(session, "run")
            await started(folders)
    (folders.project / "released").touch()
    async with server_process(folders, "second") as server:
        messages = await settled(server.api, session)
        recovering = (await server.api.get(f"/api/session/{session}/recovery"))["data"]
    (part,) = tool_parts(messages)
    assert part["state"]["status"] == "error"
    assert part["state"]["error"]["message"] == recovery.OUTCOME_UNKNOWN
    assert recovery.OUTCOME_UNKNOWN in provider.requests[1].texts("tool")[0]
    assert answers(messages) == ["I see"]
    assert len(provider.requests) == 2
    assert recovering == {"waiting": False}
    assert Path(folders.project / "effects").read_text() == "ran\n"


@requirement("S70")
async def test_a_server_that_is_stopped_lets_its_answer_come_to_an_end(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("the whole answer", hold=hold))
    async with server_process(folders, "first") as server:
        session = await server.api.create()
        async with server.api.events(session) as stream:
            await server.api.prompt(session, "talk")
            await stream.until("text.started")
        async with asyncio.TaskGroup() as group:
            group.create_task(server.stop())
            hold.set()
    async with running(folders) as instance:
        messages = await instance.api.messages(session)
    assert answers(messages) == ["the whole answer"]
    assert "error" not in messages[-1]
    assert len(provider.requests) == 1


@requirement("S70", "S189")
@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("policy", ["retry", "ask", "abandon"])
async def test_an_answer_that_was_cut_follows_the_policy_for_what_may_have_been_paid(
    folders: ProjectFolders, provider: ScriptedProvider, policy: str, end: str
) -> None:
    configure(folders, policy)
    provider.then(text("half a sen", hold=asyncio.Event()), text("tence"))
    if end == "kill":
        async with server_process(folders, "first") as server:
            session = await server.api.create()
            async with server.api.events(session) as stream:
                await server.api.prompt(session, "talk")
                await stream.until("text.started")
            await server.kill()
    else:
        async with running(folders) as instance:
            session = await instance.api.create()
            async with instance.api.events(session) as stream:
                await instance.api.prompt(session, "talk")
                await stream.until("text.started")
    path = f"/api/session/{session}/recovery"
    async with running(folders) as instance:
        api = instance.api
        await api.post(f"/api/session/{session}/resume")
        await api.wait(session)
        if policy == "ask":
            waiting = (await api.get(path))["data"]
            assert (waiting["waiting"], waiting["reason"]) == (True, "unclear")
            assert len(provider.requests) == 1
            await api.post(path, {"decision": "retry"})
            await api.wait(session)
        messages = await api.messages(session)
        assert (await api.get(path))["data"] == {"waiting": False}
    cut = next(message for message in messages if message["type"] == "assistant")
    assert cut["error"]["message"] == recovery.CUT_OFF
    if policy == "abandon":
        assert len(provider.requests) == 1
        return
    assert answers(messages)[-1] == "tence"
    assert provider.requests[1].texts("user") == ["talk", recovery.GO_ON]


@requirement("S70")
async def test_an_interrupt_that_was_acknowledged_ends_the_run_for_good(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("half", hold=asyncio.Event()))
    async with server_process(folders, "first") as server:
        session = await server.api.create()
        async with server.api.events(session) as stream:
            await server.api.prompt(session, "talk")
            await stream.until("text.started")
        await server.api.post(f"/api/session/{session}/interrupt")
        await server.kill()
    async with running(folders) as instance:
        await instance.api.ask(await instance.api.create(), "another")
        await instance.api.wait(session)
        assert (await instance.api.get(f"/api/session/{session}/recovery"))["data"] == {
            "waiting": False
        }
    assert provider.requests_with("talk") == 1
