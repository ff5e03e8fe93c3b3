"""A model that does the same again and again is told so, then a person is asked; nothing spins."""

from pathlib import Path

import pytest

from perdure.core import limits
from tests.acceptance.approval.test_permissions import asked, pending, reply, tool_states, waiting
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, Reply, Request, ScriptedProvider, calls, text

LOOK = Call("glob", {"pattern": "*.nothing"})


@pytest.fixture
def stubborn(provider: ScriptedProvider) -> ScriptedProvider:
    """A model that always wants the same, until it is told to stop."""
    provider.otherwise = lambda request: calls(LOOK)
    return provider


@requirement("S177")
async def test_the_model_is_nudged_then_a_person_decides_and_declining_settles_the_step(
    api: Api, stubborn: ScriptedProvider
) -> None:
    session = await api.create()
    request = await waiting(api, session)
    assert (request["action"], request["resources"]) == ("doom_loop", ["glob"])
    assert request["metadata"] == {"tool": "glob", "input": LOOK.arguments}
    assert len(stubborn.requests) == limits.CALLS_REPEATED_MAX + 1
    told = stubborn.requests[-1].texts("tool")
    assert ["3 times" in word for word in told] == [False, False, True]
    await reply(api, request, "reject")
    await api.wait(session)
    assert len(stubborn.requests) == limits.CALLS_REPEATED_MAX + 1
    last = (await api.messages(session))[-1]
    assert "completed" in last["time"]
    assert (await tool_states(api, session))[-1]["status"] == "error"
    assert await pending(api, session) == []


async def test_a_person_may_let_it_go_on_and_is_asked_again(
    api: Api, stubborn: ScriptedProvider
) -> None:
    session = await api.create()
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "look")
        for _ in range(3):
            await reply(api, await asked(live), "once")
        request = await asked(live)
    await reply(api, request, "reject", "there is nothing to find")
    async with api.events(session) as stream:
        await stream.until("tool.failed")
    states = await tool_states(api, session)
    assert [state["status"] for state in states[:6]] == ["completed"] * 6
    assert "there is nothing to find" in states[6]["error"]["message"]
    await api.post(f"/api/session/{session}/interrupt")


async def test_new_words_of_a_person_start_anew(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    for number in range(4):
        looks = [calls(LOOK)] * (limits.CALLS_REPEATED_MAX - 1)
        provider.then(*looks, text("nothing there"))
        messages = await api.ask(session, f"look {number}")
        assert messages[-1]["finish"] == "stop"
    assert not any("times with" in word for word in provider.requests[-1].texts("tool"))


async def test_where_repeating_is_denied_the_run_ends_by_itself(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    rule = {"action": "doom_loop", "resource": "*", "effect": "deny"}
    folders: ProjectFolders = make_folders(tmp_path, provider, permissions=[rule])
    provider.otherwise = lambda request: calls(LOOK)
    async with running(folders) as instance:
        session = await instance.api.create()
        messages = await instance.api.ask(session, "look")
        most = limits.CALLS_REPEATED_MAX + limits.CALLS_REFUSED_MAX
        assert len(provider.requests) == most + 1
        assert "doom_loop" in provider.requests[-1].texts("tool")[-1]
        assert "completed" in messages[-1]["time"]


async def test_a_call_whose_result_changes_is_nobody_s_business(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    rounds = 4 * limits.CALLS_REPEATED_MAX

    def answer(request: Request) -> Reply:
        (folders.project / f"{len(provider.requests)}.found").touch()
        return calls(Call("glob", {"pattern": "*.found"}))

    def next_reply(request: Request) -> Reply:
        return text("enough") if len(provider.requests) > rounds else answer(request)

    provider.otherwise = next_reply
    session = await api.create()
    messages = await api.ask(session, "watch")
    assert messages[-1]["finish"] == "stop"
    states = await tool_states(api, session)
    assert [state["status"] for state in states] == ["completed"] * rounds
