"""A subagent works in a Session of its own, and its caller is told how that ended."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.acceptance.approval.test_permissions import tool_states
from tests.acceptance.session_scripts import SessionScripts, task
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders, write_user_configuration
from tests.support.scripted_provider import (
    Call,
    Reply,
    Request,
    ScriptedProvider,
    calls,
    refusal,
    text,
)

ANYTHING = {"action": "*", "resource": "*", "effect": "allow"}
NESTING = {"general": {"permissions": [{"action": "task", "resource": "*", "effect": "allow"}]}}
WRITE = Call("write", {"path": "made.txt", "content": "made\n"})


@pytest.fixture
def scripts(provider: ScriptedProvider) -> SessionScripts:
    return SessionScripts(provider)


async def children(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/children"))["data"]


async def outputs(api: Api, session: str) -> list[str]:
    """What the calls of a Session brought, as the model reads it."""
    return [
        state["error"]["message"] if state["status"] == "error" else state["content"][0]["text"]
        for state in await tool_states(api, session)
    ]


# ---- one child ----------------------------------------------------------------------------------


async def test_a_subagent_works_in_a_session_of_its_own_and_its_last_words_come_back(
    api: Api, scripts: SessionScripts
) -> None:
    scripts.add("root", calls(task("dig deep")), text("as I was told"))
    scripts.add("dig", calls(Call("glob", {"pattern": "*"})), text("found ", "nothing"))
    session = await api.create()
    messages = await api.ask(session, "root")
    assert messages[-1]["content"][-1]["text"] == "as I was told"
    (child,) = await children(api, session)
    assert (child["parentID"], child["agent"]) == (session, "general")
    assert child["title"] == "Look at dig deep"
    assert child["location"] == (await api.session(session))["location"]
    (state,) = await tool_states(api, session)
    assert state["structured"] == {
        "sessionID": child["id"],
        "state": "completed",
        "steps": 2,
        "cost": pytest.approx(child["cost"]),
    }
    assert child["cost"] > 0
    assert "found nothing" in scripts.requests("root")[-1].texts("tool")[0]
    assert child["id"] in scripts.requests("root")[-1].texts("tool")[0]


async def test_the_model_is_told_whom_it_can_call(api: Api, scripts: SessionScripts) -> None:
    session = await api.create()
    await api.ask(session, "root")
    (request,) = scripts.requests("root")
    told = "\n".join(request.texts("system"))
    assert "<name>explore</name>" in told
    assert "<name>general</name>" in told
    assert "<name>build</name>" not in told
    assert "<name>title</name>" not in told


async def test_a_child_knows_nothing_of_its_parent_and_cannot_call_others(
    api: Api, scripts: SessionScripts
) -> None:
    scripts.add("root", calls(task("dig")))
    session = await api.create()
    await api.ask(session, "root of all")
    (request,) = scripts.requests("dig")
    assert request.texts("user") == ["dig"]
    names = {tool["function"]["name"] for tool in request.body["tools"]}
    assert "read" in names
    assert not names & {"task", "todowrite"}
    assert "available_subagents" not in "\n".join(request.texts("system"))


async def test_two_subagents_work_at_the_same_time(api: Api, scripts: SessionScripts) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    scripts.add("root", calls(task("one", id="a"), task("two", id="b")))
    scripts.add("one", text("1", hold=first))
    scripts.add("two", text("2", hold=second))
    session = await api.create()
    await api.prompt(session, "root")
    await scripts.provider.arrived(3)
    first.set()
    second.set()
    await api.wait(session)
    assert [text.splitlines()[-2] for text in await outputs(api, session)] == ["1", "2"]
    assert len(await children(api, session)) == 2


async def test_a_child_that_fails_is_a_result_that_the_model_reads(
    api: Api, scripts: SessionScripts
) -> None:
    scripts.add("root", calls(task("dig")), text("too bad"))
    scripts.add("dig", refusal(401, {"error": {"message": "no such key"}}))
    session = await api.create()
    messages = await api.ask(session, "root")
    assert messages[-1]["content"][-1]["text"] == "too bad"
    (state,) = await tool_states(api, session)
    assert state["structured"]["state"] == "failed"
    assert "no such key" in (await outputs(api, session))[0]


async def test_a_child_is_continued_by_its_id(api: Api, scripts: SessionScripts) -> None:
    def again(request: Request) -> Reply:
        found = request.texts("tool")[0].split()[1]
        return calls(task("and now", task_id=found))

    scripts.add("root", calls(task("dig")), again, text("done"))
    scripts.add("dig", text("a hole"), text("a deeper hole"))
    session = await api.create()
    await api.ask(session, "root")
    (child,) = await children(api, session)
    first, second = await tool_states(api, session)
    assert second["structured"]["sessionID"] == first["structured"]["sessionID"] == child["id"]
    assert "a deeper hole" in (await outputs(api, session))[1]
    assert scripts.requests("dig")[-1].texts("user") == ["dig", "and now"]


async def test_a_child_is_asked_for_in_the_background_and_its_parent_is_told_later(
    api: Api, scripts: SessionScripts
) -> None:
    hold = asyncio.Event()
    scripts.add("root", calls(task("dig", background=True)), text("meanwhile"), text("I heard"))
    scripts.add("dig", text("a hole", hold=hold))
    session = await api.create()
    messages = await api.ask(session, "root")
    assert messages[-1]["content"][-1]["text"] == "meanwhile"
    (state,) = await tool_states(api, session)
    assert state["structured"]["state"] == "running"
    async with api.events(session) as stream:
        hold.set()
        await stream.until("synthetic")
        await stream.until("step.ended")
    messages = await api.messages(session)
    told = [message["text"] for message in messages if message["type"] == "synthetic"]
    assert len(told) == 1
    assert "a hole" in told[0]
    assert messages[-1]["content"][-1]["text"] == "I heard"


# ---- what a child may do ------------------------------------------------------------------------


async def test_what_a_parent_may_not_do_its_children_may_not(
    api: Api, scripts: SessionScripts, folders: ProjectFolders
) -> None:
    scripts.add("root", calls(task("dig")))
    scripts.add("dig", calls(WRITE))
    session = await api.create(agent="plan")
    await api.ask(session, "root")
    (child,) = await children(api, session)
    (refused,) = await outputs(api, child["id"])
    assert "Denied by the rule edit *" in refused
    assert not (folders.project / "made.txt").exists()


async def test_a_permission_of_a_child_is_seen_and_given_at_the_root(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    ask = {"action": "edit", "resource": "*", "effect": "ask"}
    folders, scripts = make_folders(tmp_path, provider, permissions=[ask]), SessionScripts(provider)
    scripts.add("root", calls(task("dig")), text("thanks"))
    scripts.add("dig", calls(WRITE), text("written"))
    async with running(folders) as instance:
        api = instance.api
        session, stranger = await api.create(), await api.create()
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            await api.prompt(session, "root")
            asked = (await live.until("permission.v2.asked"))[-1]["data"]
        (child,) = await children(api, session)
        assert asked["sessionID"] == child["id"]
        (seen,) = (await api.get(f"/api/session/{session}/permission"))["data"]
        assert (seen["id"], seen["sessionID"]) == (asked["id"], child["id"])
        elsewhere = f"/api/session/{stranger}/permission/{asked['id']}/reply"
        assert (await api.call("POST", elsewhere, {"reply": "once"})).status == 404
        await api.post(f"/api/session/{session}/permission/{asked['id']}/reply", {"reply": "once"})
        await api.wait(session)
        assert (folders.project / "made.txt").read_text() == "made\n"
        assert "written" in (await outputs(api, session))[0]


async def test_a_question_of_a_child_is_seen_and_answered_at_the_root(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    options = [{"label": "red", "description": ""}]
    question = {"question": "Which?", "header": "Which", "options": options}
    curious = {"permissions": [ANYTHING]}
    folders = make_folders(tmp_path, provider, agents={"curious": curious})
    scripts = SessionScripts(provider)
    scripts.add("root", calls(task("dig", "curious")))
    scripts.add("dig", calls(Call("question", {"questions": [question]})), text("red it is"))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            await api.prompt(session, "root")
            asked = (await live.until("question.v2.asked"))[-1]["data"]
        (seen,) = (await api.get(f"/api/session/{session}/question"))["data"]
        assert seen["id"] == asked["id"]
        path = f"/api/session/{session}/question/{asked['id']}/reply"
        await api.post(path, {"answers": [["red"]]})
        await api.wait(session)
        assert "red it is" in (await outputs(api, session))[0]


async def test_an_agent_that_is_denied_is_neither_listed_nor_called(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    deny = {"action": "task", "resource": "general", "effect": "deny"}
    folders, scripts = (
        make_folders(tmp_path, provider, permissions=[deny]),
        SessionScripts(provider),
    )
    scripts.add("root", calls(task("dig")))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "root")
        (refused,) = await outputs(instance.api, session)
        assert "Denied by the rule task general" in refused
        assert await children(instance.api, session) == []
        told = "\n".join(scripts.requests("root")[0].texts("system"))
        assert "<name>explore</name>" in told
        assert "<name>general</name>" not in told


# ---- limits -------------------------------------------------------------------------------------


async def test_subagents_are_nested_only_so_deep(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders, scripts = make_folders(tmp_path, provider), SessionScripts(provider)
    write_user_configuration(folders, {"agents": NESTING})
    names = ["root", *(f"level{depth}" for depth in range(1, limits.TASK_DEPTH_MAX + 2))]
    for above, below in pairwise(names):
        scripts.add(above, calls(task(below)))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        await api.ask(session, "root")
        for _ in range(limits.TASK_DEPTH_MAX):
            (child,) = await children(api, session)
            session = child["id"]
        assert await children(api, session) == []
        assert await outputs(api, session) == ["Unknown tool: task"]
    assert scripts.requests(names[-1]) == []


async def test_only_so_many_subagents_work_at_once(api: Api, scripts: SessionScripts) -> None:
    hold = asyncio.Event()
    over = 3
    wanted = limits.TASKS_RUNNING_MAX + over
    named = [f"dig{number}" for number in range(wanted)]
    # Two turns, so that the second meets what is at work already.
    in_background = [task(name, id=name, background=True) for name in named]
    scripts.add("root", calls(*in_background))
    for name in named:
        scripts.add(name, text("dug", hold=hold))
    session = await api.create()
    await api.ask(session, "root")
    brought = await outputs(api, session)
    refused = [text for text in brought if "at work already" in text]
    assert len(refused) == over
    assert len(await children(api, session)) == limits.TASKS_RUNNING_MAX
    hold.set()
    for child in await children(api, session):
        await api.wait(child["id"])


def test_waiting_for_subagents_leaves_room_for_other_tools() -> None:
    assert limits.TASKS_RUNNING_MAX < limits.TOOLS_PARALLEL_MAX


# ---- stopping -----------------------------------------------------------------------------------


async def test_interrupting_a_parent_stops_its_children(api: Api, scripts: SessionScripts) -> None:
    never = asyncio.Event()
    scripts.add("root", calls(task("dig"), task("haul", id="b", background=True)))
    scripts.add("dig", text("I ", hold=never))
    scripts.add("haul", text("I ", hold=never))
    session = await api.create()
    await api.prompt(session, "root")
    await scripts.provider.arrived(3)
    await api.post(f"/api/session/{session}/interrupt")
    assert (await api.get("/api/session/active"))["data"] == {}
    for child in await children(api, session):
        *_, last = await api.messages(child["id"])
        assert last["error"]["message"] == "Provider turn interrupted"
    first, _ = await tool_states(api, session)
    assert first["error"]["message"] == "Tool execution interrupted"
    # A parent that was stopped is not woken again by what became of its children.
    assert [m["type"] for m in await api.messages(session)].count("synthetic") == 0


async def test_deleting_a_child_that_works_ends_the_wait(api: Api, scripts: SessionScripts) -> None:
    never = asyncio.Event()
    scripts.add("root", calls(task("dig")), text("gone?"))
    scripts.add("dig", text("I ", hold=never))
    session = await api.create()
    await api.prompt(session, "root")
    await scripts.provider.arrived(2)
    (child,) = await children(api, session)
    await api.call("DELETE", f"/api/session/{child['id']}")
    await api.wait(session)
    assert "failed" in (await outputs(api, session))[0]
    assert await children(api, session) == []


async def test_interrupting_a_child_tells_its_parent(api: Api, scripts: SessionScripts) -> None:
    never = asyncio.Event()
    scripts.add("root", calls(task("dig")), text("why?"))
    scripts.add("dig", text("I ", hold=never))
    session = await api.create()
    await api.prompt(session, "root")
    await scripts.provider.arrived(2)
    (child,) = await children(api, session)
    await api.post(f"/api/session/{child['id']}/interrupt")
    await api.wait(session)
    (told,) = await outputs(api, session)
    assert "Provider turn interrupted" in told
    assert (await api.messages(session))[-1]["content"][-1]["text"] == "why?"


# ---- hostile input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (task("dig", "nobody"), "There is no subagent 'nobody'"),
        (task("dig", "build"), "There is no subagent 'build'"),
        (task("dig", "title"), "There is no subagent 'title'"),
        (task("dig", "x" * 100_000), "There is no subagent"),
        (task("  "), "The prompt is empty"),
        (task("dig " * (limits.TASK_PROMPT_BYTES_MAX // 3)), "The prompt is larger than"),
        (task("dig", task_id="ses_nowhere"), "There is no task 'ses_nowhere'"),
        (task("dig", task_id="../../etc"), "There is no task"),
        (Call("task", {"prompt": "dig"}), "Invalid tool input"),
        (Call("task", '{"prompt": "dig", '), ""),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
async def test_a_call_that_cannot_be_followed_is_refused_with_a_reason(
    api: Api, scripts: SessionScripts, call: Call, said: str
) -> None:
    scripts.add("root", calls(call), text("never mind"))
    session = await api.create()
    messages = await api.ask(session, "root")
    assert messages[-1]["content"][-1]["text"] == "never mind"
    (refused,) = await outputs(api, session)
    assert said in refused
    assert len(refused) < 2_000
    assert await children(api, session) == []


async def test_a_session_that_is_not_a_child_is_not_continued(
    api: Api, scripts: SessionScripts
) -> None:
    stranger = await api.create(agent="general")
    scripts.add("root", calls(task("dig", task_id=stranger)))
    session = await api.create()
    await api.ask(session, "root")
    assert "There is no task" in (await outputs(api, session))[0]
    assert await api.messages(stranger) == []


async def test_a_child_is_continued_only_as_the_subagent_that_it_is(
    api: Api, scripts: SessionScripts
) -> None:
    def as_another(request: Request) -> Reply:
        return calls(task("more", "explore", task_id=request.texts("tool")[0].split()[1]))

    scripts.add("root", calls(task("dig")), as_another)
    session = await api.create()
    await api.ask(session, "root")
    assert "is not one of the subagent 'explore'" in (await outputs(api, session))[1]
