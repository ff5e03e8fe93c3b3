"""Interrupting ends what runs, keeps what there is, and starts nothing."""

import asyncio
import os

import pytest

from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


async def interrupt(api: Api, session: str) -> None:
    await api.post(f"/api/session/{session}/interrupt")


@requirement("S139")
async def test_interrupting_an_answer_keeps_what_was_said(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("so far", hold=asyncio.Event()))
    session = await api.create()
    async with api.events(session) as stream:
        await api.prompt(session, "talk")
        await stream.until("text.started")
        await interrupt(api, session)
    _, assistant = await api.messages(session)
    assert await api.facts(session, after=3) == ["text.started", "text.ended", "step.failed"]
    assert assistant["content"][0]["text"] == "so far"
    assert assistant["error"]["message"] == "Provider turn interrupted"
    assert (await api.get("/api/session/active"))["data"] == {}


@requirement("S139")
@pytest.mark.usefixtures("without_sandbox")
async def test_interrupting_a_tool_ends_its_process_and_its_call(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    command = "echo $$ > pid; exec sleep 60"
    provider.then(calls(Call("bash", {"command": command})))
    session = await api.create()
    async with api.events(session) as stream:
        await api.prompt(session, "sleep")
        await stream.until("tool.called")
        await interrupt(api, session)
    _, assistant = await api.messages(session)
    state = assistant["content"][0]["state"]
    assert (state["status"], state["error"]["message"]) == ("error", "Tool execution interrupted")
    assert "result" not in state
    assert "completed" in assistant["time"]
    pid_file = folders.project / "pid"
    if pid_file.exists() and pid_file.read_text():
        assert not _alive(int(pid_file.read_text()))


@requirement("S139")
async def test_interrupting_an_idle_session_does_nothing(api: Api) -> None:
    session = await api.create()
    await interrupt(api, session)
    await interrupt(api, session)
    assert await api.facts(session) == []


@requirement("S139", "S192")
async def test_interrupting_or_awaiting_an_unknown_session_is_refused(api: Api) -> None:
    for verb in ("interrupt", "wait"):
        answer = await api.call("POST", f"/api/session/ses_unknown/{verb}")
        assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


@requirement("S139")
async def test_input_that_waited_stays_pending_and_runs_with_the_next_prompt(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("hold on", hold=asyncio.Event()))
    session = await api.create()
    await api.prompt(session, "first")
    await provider.arrived(1)
    await api.prompt(session, "queued", delivery="queue")
    await api.prompt(session, "steered")
    await interrupt(api, session)
    assert len(provider.requests) == 1
    assert (await api.facts(session)).count("prompted") == 1
    await api.prompt(session, "go on")
    await api.wait(session)
    assert provider.requests[1].texts("user") == ["first", "steered", "go on"]
    assert provider.requests[2].texts("user")[-1] == "queued"


async def test_two_interrupts_at_once_end_one_run_once(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("hold on", hold=asyncio.Event()))
    session = await api.create()
    await api.prompt(session, "talk")
    await provider.arrived(1)
    await asyncio.gather(*(interrupt(api, session) for _ in range(5)))
    assert (await api.facts(session)).count("step.failed") <= 1
    assert (await api.get("/api/session/active"))["data"] == {}


@requirement("S192")
async def test_waiting_lasts_until_the_session_is_idle(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("slow", hold=hold))
    session = await api.create()
    await api.prompt(session, "talk")
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(api.wait(session))
        await provider.arrived(1)
        # Another request goes there and back meanwhile, and the first is still waiting.
        await api.session(session)
        assert not waiting.done()
        hold.set()
    assert (await api.facts(session))[-1] == "step.ended"
    await api.wait(session)


async def test_stopping_the_server_settles_the_step_that_was_running(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("unfinished", hold=asyncio.Event()), text("whole"))
    async with running(folders) as before:
        session = await _prompted(before, provider)
    async with running(folders) as after:
        await after.api.wait(session)
        _, cut, _, whole = await after.api.messages(session)
        assert cut["content"][0]["text"] == "unfinished"
        assert cut["finish"] == "error"
        assert whole["content"][0]["text"] == "whole"


async def _prompted(instance: Instance, provider: ScriptedProvider) -> str:
    session = await instance.api.create()
    async with instance.api.events(session) as stream:
        await instance.api.prompt(session, "talk")
        await stream.until("text.started")
    return session


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
