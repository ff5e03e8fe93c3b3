"""What a tool may not do by itself, a person decides: over HTTP, while the tool call waits."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api, Stream
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, Reply, ScriptedProvider, calls, text

ASK_BASH = {"action": "bash", "resource": "*", "effect": "ask"}


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider, permissions=[ASK_BASH])


def bash(command: str, id: str | None = None) -> Call:
    return Call("bash", {"command": command}, id)


@asynccontextmanager
async def prompted(api: Api, session: str) -> AsyncGenerator[Stream]:
    """The live stream, from before the prompt on."""
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        yield live


async def asked(live: Stream) -> JsonObject:
    """The next request that is announced."""
    return (await live.until("permission.v2.asked"))[-1]["data"]


async def waiting(api: Api, session: str) -> JsonObject:
    """Prompt a Session whose model calls a tool; the request that its call waits for."""
    async with prompted(api, session) as live:
        return await asked(live)


async def reply(api: Api, request: JsonObject, word: str, message: str | None = None) -> None:
    body = {"reply": word} | ({} if message is None else {"message": message})
    await api.post(f"/api/session/{request['sessionID']}/permission/{request['id']}/reply", body)


async def pending(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/permission"))["data"]


async def tool_states(api: Api, session: str) -> list[JsonObject]:
    """The states of all tool calls, in order."""
    messages = await api.messages(session)
    parts = [part for m in messages if m["type"] == "assistant" for part in m["content"]]
    return [part["state"] for part in parts if part["type"] == "tool"]


# ---- the four words -----------------------------------------------------------------------------


@requirement("S177", "S179")
async def test_a_call_waits_until_it_is_allowed_once(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(bash("touch made")), text("done"))
    session = await api.create()
    async with prompted(api, session) as live:
        request = await asked(live)
        assert not (folders.project / "made").exists()
        assert await pending(api, session) == [request]
        path = f"/api/session/{session}/permission/{request['id']}"
        assert (await api.get(path))["data"] == request
        listed = await api.get("/api/permission/request")
        assert listed["location"]["directory"] == str(folders.project)
        assert listed["data"] == [request]
        await reply(api, request, "once")
        replied = (await live.until("permission.v2.replied"))[-1]
    assert replied["data"] == {
        "sessionID": session,
        "requestID": request["id"],
        "reply": "once",
    }
    await api.wait(session)
    _, assistant, _ = await api.messages(session)
    assert (folders.project / "made").exists()
    assert assistant["content"][0]["state"]["status"] == "completed"
    source = {"type": "tool", "messageID": assistant["id"], "callID": "call_0"}
    assert (request["action"], request["resources"]) == ("bash", ["touch made"])
    assert (request["save"], request["source"]) == (["touch made"], source)
    assert await pending(api, session) == []
    provider.then(calls(bash("touch made")), text("done"))
    await waiting(api, session)


@requirement("S177", "S179")
async def test_what_was_always_allowed_is_not_asked_again_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(bash("echo a")), text("done"))
    async with running(folders) as before:
        session = await before.api.create()
        await reply(before.api, await waiting(before.api, session), "always")
        await before.api.wait(session)
        (rule,) = (await before.api.get("/api/permission/saved"))["data"]
        project = (await before.api.get("/api/location"))["project"]["id"]
        assert (rule["action"], rule["resource"]) == ("bash", "echo *")
        assert (rule["projectID"], rule["id"][:4]) == (project, "psv_")
    async with running(folders) as after:
        provider.then(calls(bash("echo a")), text("done"))
        await after.api.ask(session, "again")
        states = await tool_states(after.api, session)
        assert [state["status"] for state in states] == ["completed", "completed"]
        # A rule that asks is turned by an approval, and stays what it was for everything else.
        provider.then(calls(bash("ls")), text("done"))
        await reply(after.api, await waiting(after.api, session), "once")
        await after.api.wait(session)
        assert (await after.api.get("/api/permission/saved?projectID=other"))["data"] == []
        for _ in range(2):
            forgotten = await after.api.call("DELETE", f"/api/permission/saved/{rule['id']}")
            assert (forgotten.status, forgotten.body) == (204, b"")
        assert (await after.api.get("/api/permission/saved"))["data"] == []
        provider.then(calls(bash("echo a")))
        assert (await waiting(after.api, session))["resources"] == ["echo a"]


@requirement("S177")
async def test_a_plain_rejection_stops_the_run_and_settles_the_step(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(bash("touch made")))
    session = await api.create()
    await reply(api, await waiting(api, session), "reject")
    await api.wait(session)
    facts = await api.facts(session)
    assert facts[-2:] in (["tool.failed", "step.ended"], ["tool.failed", "step.failed"])
    _, assistant = await api.messages(session)
    assert "completed" in assistant["time"]
    assert assistant["content"][0]["state"]["status"] == "error"
    assert len(provider.requests) == 1
    assert not (folders.project / "made").exists()
    provider.then(text("then something else"))
    assert (await api.ask(session, "go on"))[-1]["finish"] == "stop"


@requirement("S177")
@pytest.mark.parametrize("tool", ["bash", "read"])
async def test_a_rejection_with_words_tells_them_to_the_model(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, tool: str
) -> None:
    (folders.project / ".env").write_text("SECRET=1")
    wanted = {"bash": bash("rm -rf build"), "read": Call("read", {"path": ".env"})}[tool]
    provider.then(calls(wanted), text("I will"))
    session = await api.create()
    await reply(api, await waiting(api, session), "reject", "use `make clean` instead \u00e9")
    await api.wait(session)
    (state,) = await tool_states(api, session)
    assert state["status"] == "error"
    assert state["error"]["message"] == "use `make clean` instead \u00e9"
    told = provider.requests[1].messages[-1]
    assert told["role"] == "tool"
    assert "use `make clean` instead \u00e9" in told["content"]
    assert (await api.messages(session))[-1]["finish"] == "stop"


# ---- several at once ----------------------------------------------------------------------------


@requirement("S177")
@pytest.mark.parametrize("words", [None, "not like this"])
async def test_rejecting_one_rejects_all_that_the_session_waits_for(
    api: Api, provider: ScriptedProvider, words: str | None
) -> None:
    bystander = await api.create()
    provider.then(calls(bash("echo c")))
    elsewhere = await waiting(api, bystander)
    provider.then(calls(bash("echo a", "call_a"), bash("echo b", "call_b")))
    session = await api.create()
    async with prompted(api, session) as live:
        first, second = await asked(live), await asked(live)
        await reply(api, first, "reject", words)
        for request in (first, second):
            await live.until("permission.v2.replied", requestID=request["id"], reply="reject")
    await api.wait(session)
    states = await tool_states(api, session)
    assert [state["status"] for state in states] == ["error", "error"]
    assistant = (await api.messages(session))[-1]
    assert "completed" in assistant["time"]
    told = {part["id"]: part["state"]["error"]["message"] for part in assistant["content"]}
    assert told[first["source"]["callID"]] == words or words is None
    assert told[second["source"]["callID"]] == "Tool execution interrupted"
    assert await pending(api, session) == []
    assert len(provider.requests) == 2
    assert await pending(api, bystander) == [elsewhere]


@requirement("S177")
async def test_always_lets_every_request_through_that_it_covers(
    api: Api, provider: ScriptedProvider
) -> None:
    one, other = await api.create(), await api.create()
    provider.otherwise = lambda request: (
        text("done") if request.roles[-1] == "tool" else calls(bash("echo same"))
    )
    requests = [await waiting(api, session) for session in (one, other)]
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await reply(api, requests[0], "always")
        for request in requests:
            await live.until("permission.v2.replied", requestID=request["id"], reply="always")
    for session in (one, other):
        await api.wait(session)
        assert [state["status"] for state in await tool_states(api, session)] == ["completed"]


@requirement("S179")
async def test_of_many_replies_at_once_one_counts(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(bash("echo once")), text("done"))
    session = await api.create()
    request = await waiting(api, session)
    path = f"/api/session/{session}/permission/{request['id']}/reply"
    answers = await asyncio.gather(*(api.call("POST", path, {"reply": "once"}) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [204] + [404] * 19
    assert {answer.tag for answer in answers} == {None, "PermissionNotFoundError"}
    await api.wait(session)
    assert [state["status"] for state in await tool_states(api, session)] == ["completed"]


# ---- waiting ends -------------------------------------------------------------------------------


@requirement("S177")
async def test_interrupting_takes_the_request_away(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(bash("echo a")))
    session = await api.create()
    request = await waiting(api, session)
    await api.post(f"/api/session/{session}/interrupt")
    assert await pending(api, session) == []
    path = f"/api/session/{session}/permission/{request['id']}"
    assert (await api.call("GET", path)).tag == "PermissionNotFoundError"
    late = await api.call("POST", f"{path}/reply", {"reply": "once"})
    assert (late.status, late.tag) == (404, "PermissionNotFoundError")
    (state,) = await tool_states(api, session)
    assert state["error"]["message"] == "Tool execution interrupted"


async def test_a_request_can_be_answered_when_its_directory_is_gone(
    folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    shutil.copytree(folders.project, gone)
    (gone / ".env").write_text("A=1")
    provider.then(calls(Call("read", {"path": ".env"})), text("done"))
    async with running(folders) as before:
        session = await before.api.create(location={"directory": str(gone)})
        request = await waiting(before.api, session)
        shutil.rmtree(gone)
        assert await pending(before.api, session) == [request]
        await reply(before.api, request, "reject", "never mind")
        await before.api.wait(session)
        assert (await tool_states(before.api, session))[0]["error"]["message"] == "never mind"
    async with running(folders) as after:
        path = f"/api/session/{session}/permission"
        assert await pending(after.api, session) == []
        assert (await after.api.call("GET", f"{path}/{request['id']}")).status == 404
        refused = await after.api.call("POST", path, {"action": "bash", "resources": ["ls"]})
        assert (refused.status, refused.json["field"]) == (400, "location")


# ---- what is asked, and for whom ----------------------------------------------------------------


@requirement("S178")
async def test_working_outside_the_location_is_asked_before_the_command(
    api: Api, provider: ScriptedProvider, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    provider.then(calls(Call("bash", {"command": "pwd", "workdir": str(outside)})), text("done"))
    session = await api.create()
    async with prompted(api, session) as live:
        directory = await asked(live)
        await reply(api, directory, "once")
        command = await asked(live)
        await reply(api, command, "once")
    await api.wait(session)
    assert (directory["action"], directory["resources"]) == ("external_directory", [f"{outside}/*"])
    assert directory["save"] == [f"{outside}/*"]
    assert (command["action"], command["resources"]) == ("bash", ["pwd"])
    (state,) = await tool_states(api, session)
    assert str(outside) in state["content"][0]["text"]


@requirement("S87")
async def test_a_call_keeps_the_permissions_of_the_turn_that_made_it(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    hold = asyncio.Event()
    write = calls(Call("write", {"path": "made", "content": "x"}), bash("echo a"))
    provider.then(Reply(pieces=(hold, *write.pieces)), text("done"))
    session = await api.create(agent="build")
    async with prompted(api, session) as live:
        await provider.arrived(1)
        # The other agent may not edit, and may run every command.
        await api.post(f"/api/session/{session}/agent", {"agent": "plan"})
        hold.set()
        await reply(api, await asked(live), "once")
    await api.wait(session)
    states = await tool_states(api, session)
    assert [state["status"] for state in states] == ["completed", "completed"]
    assert (folders.project / "made").read_text() == "x"


@requirement("S88")
async def test_a_session_without_an_agent_is_run_and_permitted_as_build(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    await api.ask(session, "hello")
    started = [e for e in await api.history(session) if e["type"] == "session.next.step.started"]
    assert started[0]["data"]["agent"] == "build"
    effects = [await decided(api, session, agent) for agent in (None, "build", "plan", "nobody")]
    assert effects == ["allow", "allow", "deny", "deny"]


async def decided(api: Api, session: str, agent: str | None) -> str:
    """Whether an agent may edit a file."""
    body = {"action": "edit", "resources": ["a.txt"], "agent": agent}
    return (await api.post(f"/api/session/{session}/permission", body))["data"]["effect"]


# ---- requests that a client makes itself --------------------------------------------------------


@requirement("S177", "S179")
async def test_a_client_may_ask_for_itself_and_only_what_is_open_waits(api: Api) -> None:
    session = await api.create()
    path = f"/api/session/{session}/permission"
    source = {"type": "tool", "messageID": "msg_x", "callID": "c"}
    wish = {"action": "bash", "resources": ["ls"], "metadata": {"k": 1}, "source": source}
    wishes: list[tuple[JsonObject, str]] = [
        ({"action": "edit", "resources": ["a.txt"]}, "allow"),
        ({"action": "bash", "resources": []}, "allow"),
        ({"action": "edit", "resources": ["a.txt"], "agent": "nobody"}, "deny"),
        ({"action": "read", "resources": ["b.txt", "a.env"]}, "ask"),
        ({**wish, "id": "per_mine"}, "ask"),
    ]
    for body, effect in wishes:
        assert (await api.post(path, body))["data"]["effect"] == effect
    requests = await pending(api, session)
    assert [request["action"] for request in requests] == ["read", "bash"]
    assert requests[1] == {"id": "per_mine", "sessionID": session, **wish}
    again = await api.call("POST", path, {**wish, "id": "per_mine"})
    assert (again.status, again.json["resource"]) == (409, "per_mine")
    # Without anything to save, always is once.
    await reply(api, requests[1], "always")
    assert (await api.get("/api/permission/saved"))["data"] == []
    assert (await api.post(path, {**wish, "id": "per_mine"}))["data"]["effect"] == "ask"


@requirement("S179")
async def test_requests_of_other_sessions_and_unknown_ones_are_not_found(api: Api) -> None:
    mine, other = await api.create(), await api.create()
    path = f"/api/session/{mine}/permission"
    await api.post(path, {"id": "per_mine", "action": "bash", "resources": ["ls"]})
    foreign = f"/api/session/{other}/permission/per_mine"
    for answer in (
        await api.call("GET", foreign),
        await api.call("POST", f"{foreign}/reply", {"reply": "once"}),
        await api.call("GET", f"{path}/per_nobody"),
    ):
        assert (answer.status, answer.tag) == (404, "PermissionNotFoundError")
    for rest in ("", "/per_mine"):
        answer = await api.call("GET", f"/api/session/ses_nobody/permission{rest}")
        assert (answer.status, answer.tag) == (404, "SessionNotFoundError")
    assert len(await pending(api, mine)) == 1
    assert await pending(api, other) == []


async def test_requests_beyond_all_measure_are_refused_and_leave_nothing(api: Api) -> None:
    session = await api.create()
    path = f"/api/session/{session}/permission"
    for body in (
        {"action": "bash", "resources": ["x"] * (limits.PERMISSION_RESOURCES_MAX + 1)},
        {"action": "bash", "resources": [], "save": ["x"] * (limits.PERMISSION_RESOURCES_MAX + 1)},
        {"action": "bash", "resources": ["x" * limits.PERMISSION_INPUT_BYTES_MAX]},
        {"action": "bash", "resources": ["x"], "metadata": {"k": "\u00e9" * 40_000}},
    ):
        answer = await api.call("POST", path, body)
        assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    await api.post(path, {"id": "per_1", "action": "bash", "resources": ["x"]})
    words = {"reply": "reject", "message": "x" * (limits.PERMISSION_FEEDBACK_BYTES_MAX + 1)}
    answer = await api.call("POST", f"{path}/per_1/reply", words)
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    assert [request["id"] for request in await pending(api, session)] == ["per_1"]


async def test_too_many_waiting_requests_are_refused_and_the_others_stay(api: Api) -> None:
    session = await api.create()
    path = f"/api/session/{session}/permission"
    body = {"action": "bash", "resources": ["x"]}
    for _ in range(limits.PERMISSIONS_PENDING_MAX // 50):
        await asyncio.gather(*(api.post(path, body) for _ in range(50)))
    answer = await api.call("POST", path, body)
    assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
    waiting_now = await pending(api, session)
    assert len(waiting_now) == limits.PERMISSIONS_PENDING_MAX
    await reply(api, waiting_now[0], "reject")
    assert await pending(api, session) == []
