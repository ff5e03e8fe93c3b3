"""Killing the server at the worst moments loses nothing that was acknowledged, and repeats nothing.

Every test ends with the same questions: is each acknowledged prompt there once, is the log without
a gap, are the projections what the log makes them, and does the next prompt work?
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.core.session import recovery
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import ServerProcess, server_process


@asynccontextmanager
async def restarted(folders: ProjectFolders) -> AsyncGenerator[Api]:
    """A new server on what the killed one left; sound when it is done."""
    async with server_process(folders, "restarted") as server:
        yield server.api
    await database_check.check(folders.database)


async def exactly_once(api: Api, sessions: list[str]) -> Counter[str]:
    """How often each prompt was admitted; each admitted one must have been said exactly once."""
    admitted: Counter[str] = Counter()
    for session in sessions:
        events = await api.history(session)
        assert [e["durable"]["seq"] for e in events] == list(range(1, len(events) + 1))
        said = Counter(ids_of(events, "prompted"))
        here = Counter(ids_of(events, "prompt.admitted"))
        assert said == here
        admitted += here
    return admitted


def ids_of(events: list[JsonObject], kind: str) -> list[str]:
    return [e["data"]["messageID"] for e in events if e["type"] == f"session.next.{kind}"]


def tool_states(messages: list[JsonObject]) -> list[JsonObject]:
    parts = (part for message in messages for part in message.get("content", ()))
    return [part["state"] for part in parts if part["type"] == "tool"]


async def answered(api: Api, session: str) -> list[JsonObject]:
    messages = await api.ask(session, "are you there")
    assert messages[-1]["content"][-1]["text"] == "ok"
    return messages


@requirement("S66", "S70", "S76")
async def test_a_kill_in_a_storm_of_prompts_loses_no_acknowledged_one(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    acknowledged: set[str] = set()
    enough = asyncio.Event()

    async def insist(api: Api, session: str, worker: int) -> None:
        for number in range(1_000):
            name = f"msg_{worker}_{number}"
            try:
                await api.prompt(session, name, id=name)
            except (ConnectionError, AssertionError, asyncio.IncompleteReadError):
                return
            acknowledged.add(name)
            if len(acknowledged) >= 60:
                enough.set()

    async with server_process(folders) as server:
        sessions = [await server.api.create() for _ in range(4)]
        async with asyncio.TaskGroup() as group:
            for worker in range(12):
                group.create_task(insist(server.api, sessions[worker % 4], worker))
            await enough.wait()
            await server.kill()
    async with restarted(folders) as api:
        for session in sessions:
            await answered(api, session)
        admitted = await exactly_once(api, sessions)
    assert len(acknowledged) >= 60
    assert acknowledged <= set(admitted)
    assert set(admitted.values()) == {1}


@requirement("S67", "S70", "S76")
async def test_a_prompt_that_was_only_admitted_runs_after_the_kill_when_it_is_asked_for(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "keep me", id="msg_keep", resume=False)
        await server.kill()
    async with restarted(folders) as api:
        await api.prompt(session, "keep me", id="msg_keep")
        await api.wait(session)
        assert await exactly_once(api, [session]) == {"msg_keep": 1}
    assert provider.requests_with("keep me") == 1


async def test_a_kill_while_text_streams_leaves_a_session_that_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("half a sen", hold=asyncio.Event()))
    async with server_process(folders) as server:
        session = await until(server, "talk", "text.started")
        await server.kill()
    async with restarted(folders) as api:
        await api.wait(session)
        messages = await answered(api, session)
        broken = messages[1]
        assert "completed" in broken["time"]
        told = ["talk", recovery.GO_ON, "are you there"]
        assert provider.requests[-1].texts("user") == told


@requirement("S189")
async def test_a_tool_that_was_running_is_never_run_again(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    started, released = folders.project / "started", folders.project / "released"
    os.mkfifo(started)
    command = "echo ran >> effects; echo up > started; while [ ! -e released ]; do sleep 0.1; done"
    provider.then(calls(Call("bash", {"command": command})))
    async with server_process(folders) as server:
        session = await until(server, "run", "tool.called")
        async with asyncio.timeout(10):
            await asyncio.to_thread(started.read_text)
        await server.kill()
    released.touch()
    async with restarted(folders) as api:
        messages = await answered(api, session)
        (state,) = tool_states(messages)
        assert state["status"] == "error"
        assert state["error"]["message"] == recovery.OUTCOME_UNKNOWN
        assert (await api.facts(session)).count("tool.failed") == 1
    assert effects(folders) == ["ran"]
    assert "Tool execution interrupted" in provider.requests[-1].texts("tool")[0]


@requirement("S169", "S189")
async def test_a_tool_that_was_settled_stays_settled(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(
        calls(Call("bash", {"command": "echo ran >> effects; echo done"})),
        text("never seen", hold=asyncio.Event()),
    )
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "run")
        await provider.arrived(2)
        await server.kill()
    async with restarted(folders) as api:
        messages = await answered(api, session)
        (state,) = tool_states(messages)
        assert (state["status"], state["content"][0]["text"]) == ("completed", "done\n")
        assert (await api.facts(session)).count("tool.success") == 1
    assert effects(folders) == ["ran"]
    assert provider.requests[-1].roles[:4] == ["system", "user", "assistant", "tool"]


async def test_kill_after_kill_the_log_only_grows(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    before: list[JsonObject] = []
    session = "ses_survivor"
    for number in range(4):
        provider.then(text("cut short", hold=asyncio.Event()))
        async with server_process(folders, f"life {number}") as server:
            await server.api.create(id=session)
            async with server.api.events(session, after=len(before)) as stream:
                await server.api.prompt(session, f"life {number}")
                await stream.until("text.started")
            history = await server.api.history(session)
            await server.kill()
        assert history[: len(before)] == before
        before = history
    async with restarted(folders) as api:
        assert (await api.history(session))[: len(before)] == before
        await answered(api, session)


async def until(server: ServerProcess, words: str, fact: str) -> str:
    """A Session whose first prompt has got as far as `fact`."""
    session = await server.api.create()
    async with server.api.events(session) as stream:
        await server.api.prompt(session, words)
        await stream.until(fact)
    return session


def effects(folders: ProjectFolders) -> list[str]:
    return Path(folders.project / "effects").read_text().splitlines()
