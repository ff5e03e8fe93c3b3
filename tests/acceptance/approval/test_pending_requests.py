"""What waits for a person is never forgotten: not by another server, and not by a crash."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from perdure.embedded.host import WireHost, open_wire_host
from perdure.schema.codec import JsonObject
from perdure.testing import ScriptedModel, tool_call
from perdure.testing import text as says
from tests.acceptance.approval.test_permissions import pending, reply, tool_states, waiting
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

ASK_EDIT = {"action": "edit", "resource": "*", "effect": "ask"}
ASK_BASH = {"action": "bash", "resource": "*", "effect": "ask"}
APPEND = Call("bash", {"command": "echo made >> made.txt"})
WRITE = Call("write", {"path": "made.txt", "content": "made\n"})
ASK = Call(
    "question",
    {
        "questions": [
            {
                "question": "Which?",
                "header": "Which",
                "options": [{"label": "red", "description": ""}],
            }
        ]
    },
)
PATIENCE_SECONDS = 10


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider, permissions=[ASK_EDIT, ASK_BASH])


async def questions(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/question"))["data"]


async def question_of(api: Api, session: str) -> JsonObject:
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "ask me")
        return (await live.until("question.v2.asked"))[-1]["data"]


# ---- after a crash, and after a stop ------------------------------------------------------------


@asynccontextmanager
async def ended(folders: ProjectFolders, name: str, end: str) -> AsyncGenerator[Api]:
    """A server that is killed or stopped when the scope ends."""
    async with server_process(folders, name) as server:
        yield server.api
        if end == "kill":
            await server.kill()
        else:
            await server.stop()


ENDS = pytest.mark.parametrize("end", ["kill", "stop"])


@requirement("S177", "S189")
@ENDS
@pytest.mark.parametrize("restarts", [1, 4])
async def test_a_permission_outlives_its_server_and_runs_the_call_that_was_shown_once(
    folders: ProjectFolders, provider: ScriptedProvider, end: str, restarts: int
) -> None:
    provider.then(calls(APPEND), text("done"))
    async with ended(folders, "first", end) as api:
        session = await api.create()
        request = await waiting(api, session)
    for number in range(restarts):
        async with ended(folders, f"life {number}", end) as api:
            assert await pending(api, session) == [request]
            assert (await api.get("/api/permission/request"))["data"] == [request]
    assert not (folders.project / "made.txt").exists()
    async with server_process(folders, "last") as server:
        await reply(server.api, request, "once")
        await server.api.wait(session)
        (state,) = await tool_states(server.api, session)
        assert state["status"] == "completed"
        assert (await server.api.messages(session))[-1]["content"][-1]["text"] == "done"
        late = f"/api/session/{session}/permission/{request['id']}/reply"
        assert (await server.api.call("POST", late, {"reply": "once"})).status == 404
    async with server_process(folders, "after") as server:
        await server.api.ask(session, "are you there")
        assert await pending(server.api, session) == []
    assert (folders.project / "made.txt").read_text() == "made\n"
    assert database_check.dump(folders.database)["pending_request"] == []
    await database_check.check(folders.database)


@requirement("S177", "S178")
@ENDS
async def test_a_permission_that_is_rejected_after_a_restart_is_rejected(
    folders: ProjectFolders, provider: ScriptedProvider, end: str
) -> None:
    provider.then(calls(APPEND), text("as you say"))
    async with ended(folders, "first", end) as api:
        session = await api.create()
        request = await waiting(api, session)
    async with server_process(folders, "second") as server:
        await reply(server.api, request, "reject", "not there")
        await server.api.wait(session)
        (state,) = await tool_states(server.api, session)
        assert "not there" in state["error"]["message"]
    assert "not there" in provider.requests[-1].texts("tool")[0]
    assert not (folders.project / "made.txt").exists()


@requirement("S185")
@ENDS
async def test_a_question_outlives_its_server(
    folders: ProjectFolders, provider: ScriptedProvider, end: str
) -> None:
    provider.then(calls(ASK), text("done"))
    async with ended(folders, "first", end) as api:
        session = await api.create()
        asked = await question_of(api, session)
    async with server_process(folders, "second") as server:
        assert await questions(server.api, session) == [asked]
        path = f"/api/session/{session}/question/{asked['id']}/reply"
        await server.api.post(path, {"answers": [["red"]]})
        await server.api.wait(session)
    assert '"Which?" = "red"' in provider.requests[-1].texts("tool")[0]
    assert len(provider.requests) == 2


@requirement("S179")
async def test_an_answer_that_was_acknowledged_before_a_kill_counts_after_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """The server dies with the answer on disk, and the next one acts on it."""
    provider.then(calls(APPEND), text("done"))
    async with ended(folders, "first", "kill") as api:
        session = await api.create()
        request = await waiting(api, session)
    async with open_wire_host(
        str(folders.project), environment=folders.environment, resumes=False
    ) as idle:
        await idle.sessions.permissions.reply(session, request["id"], "once")
    async with server_process(folders, "second") as server:
        async with server.api.events(session) as stream:
            await stream.until("step.ended", finish="stop")
        assert await pending(server.api, session) == []
    assert (folders.project / "made.txt").read_text() == "made\n"


@requirement("S189")
async def test_an_heir_goes_on_with_what_a_dying_server_waited_for(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(APPEND), text("done"))
    async with server_process(folders, "heir") as heir:
        async with ended(folders, "victim", "kill") as api:
            session = await api.create()
            request = await waiting(api, session)
            assert await pending(heir.api, session) == [request]
        assert await pending(heir.api, session) == [request]
        await reply(heir.api, request, "once")
        async with heir.api.events(session) as stream:
            await stream.until("step.ended", finish="stop")
    assert (folders.project / "made.txt").read_text() == "made\n"


@requirement("S70", "S189")
@pytest.mark.parametrize("how", ["interrupt", "delete"])
async def test_what_waits_is_void_after_an_interrupt_or_a_deletion(
    folders: ProjectFolders, provider: ScriptedProvider, how: str
) -> None:
    provider.then(calls(APPEND))
    async with ended(folders, "first", "kill") as api:
        session = await api.create()
        request = await waiting(api, session)
    async with server_process(folders, "second") as server:
        api = server.api
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            if how == "interrupt":
                await api.post(f"/api/session/{session}/interrupt")
            else:
                await api.call("DELETE", f"/api/session/{session}")
            replied = (await live.until("permission.v2.replied"))[-1]["data"]
        assert (replied["requestID"], replied["reply"]) == (request["id"], "reject")
        assert (await api.get("/api/permission/request"))["data"] == []
    assert not (folders.project / "made.txt").exists()
    assert database_check.dump(folders.database)["pending_request"] == []


@requirement("S177")
@ENDS
async def test_a_request_that_a_client_made_outlives_the_server(
    folders: ProjectFolders, end: str
) -> None:
    async with ended(folders, "first", end) as api:
        session = await api.create()
        body = {"id": "per_mine", "action": "edit", "resources": ["a"], "save": ["a"]}
        await api.post(f"/api/session/{session}/permission", body)
    async with server_process(folders, "second") as server:
        (request,) = await pending(server.api, session)
        assert request["id"] == "per_mine"
        await reply(server.api, request, "always")
        assert await pending(server.api, session) == []
        again = await server.api.post(f"/api/session/{session}/permission", body)
        assert again["data"]["effect"] == "allow"


# ---- after an embedding program closes ----------------------------------------------------------


async def asked_until_closed(folders: ProjectFolders, event_type: str) -> tuple[str, JsonObject]:
    """A Session whose program closes the runtime at a request, and the request."""
    async with open_wire_host(str(folders.project), environment=folders.environment) as perdure:
        session = await perdure.sessions.create()
        async with aclosing(perdure.events.subscribe()) as live:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await anext(live)
                await perdure.sessions.prompt(session["id"], text="do it")
                while (event := await anext(live))["type"] != event_type:
                    pass
    return session["id"], cast("JsonObject", event["data"])


@requirement("S177", "S189")
async def test_a_permission_outlives_the_program_that_embeds_the_runtime(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(APPEND), text("done"))
    session, request = await asked_until_closed(folders, "permission.v2.asked")
    async with server_process(folders, "after") as server:
        assert await pending(server.api, session) == [request]
        await reply(server.api, request, "once")
        await server.api.wait(session)
    assert (folders.project / "made.txt").read_text() == "made\n"
    assert len(provider.requests) == 2


@requirement("S185")
async def test_a_question_outlives_the_program_that_embeds_the_runtime(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(ASK), text("done"))
    session, asked = await asked_until_closed(folders, "question.v2.asked")
    async with server_process(folders, "after") as server:
        assert await questions(server.api, session) == [asked]
        path = f"/api/session/{session}/question/{asked['id']}/reply"
        await server.api.post(path, {"answers": [["red"]]})
        await server.api.wait(session)
    assert '"Which?" = "red"' in provider.requests[-1].texts("tool")[0]


# ---- from another process -----------------------------------------------------------------------


@requirement("S177", "S179")
async def test_a_permission_is_seen_and_given_through_another_server(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(WRITE), text("done"))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        request = await waiting(a.api, session)
        assert await pending(b.api, session) == [request]
        path = f"/api/session/{session}/permission/{request['id']}"
        assert (await b.api.get(path))["data"] == request
        assert (await b.api.get("/api/permission/request"))["data"] == [request]
        await reply(b.api, request, "once")
        again = await b.api.call("POST", f"{path}/reply", {"reply": "reject"})
        assert (again.status, again.tag) == (404, "PermissionNotFoundError")
        await a.api.wait(session)
        (state,) = await tool_states(a.api, session)
        assert state["status"] == "completed"
    assert (folders.project / "made.txt").read_text() == "made\n"


async def test_a_word_of_correction_travels_to_the_model(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(WRITE), text("as you say"))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        request = await waiting(a.api, session)
        await reply(b.api, request, "reject", "use another name")
        await a.api.wait(session)
    assert "use another name" in provider.requests[-1].texts("tool")[0]


@requirement("S185")
async def test_a_question_is_seen_and_answered_through_another_server(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(ASK), text("done"))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        asked = await question_of(a.api, session)
        assert await questions(b.api, session) == [asked]
        assert (await b.api.get("/api/question/request"))["data"] == [asked]
        path = f"/api/session/{session}/question/{asked['id']}"
        refused = await b.api.call("POST", f"{path}/reply", {"answers": []})
        assert (refused.status, refused.tag) == (400, "InvalidRequestError")
        foreign = await b.api.create()
        elsewhere = f"/api/session/{foreign}/question/{asked['id']}/reject"
        assert (await b.api.call("POST", elsewhere)).tag == "QuestionNotFoundError"
        await b.api.post(f"{path}/reply", {"answers": [["red"]]})
        await a.api.wait(session)
    assert '"Which?" = "red"' in provider.requests[-1].texts("tool")[0]


@requirement("S185")
async def test_a_question_is_rejected_through_another_server(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(ASK))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        asked = await question_of(a.api, session)
        await b.api.post(f"/api/session/{session}/question/{asked['id']}/reject")
        await a.api.wait(session)
        (state,) = await tool_states(a.api, session)
        assert state["error"]["message"] == "Tool execution interrupted"
    assert len(provider.requests) == 1


async def test_an_id_that_waits_in_another_server_is_taken(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    body = {"id": "per_mine", "action": "edit", "resources": ["a"]}
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        path = f"/api/session/{session}/permission"
        assert (await a.api.post(path, body))["data"]["effect"] == "ask"
        taken = await b.api.call("POST", path, body)
        assert (taken.status, taken.tag) == (409, "ConflictError")
        # No call waits for this one; it is settled all the same.
        async with a.api.stream("/api/event") as live:
            await live.until("server.connected")
            await b.api.post(f"{path}/per_mine/reply", {"reply": "once"})
            await live.until("permission.v2.replied")
        assert await pending(a.api, session) == await pending(b.api, session) == []


# ---- people who go away -------------------------------------------------------------------------


async def test_an_interrupt_takes_the_request_from_everybody_s_screen(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(WRITE))
    session = await api.create()
    request = await waiting(api, session)
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.post(f"/api/session/{session}/interrupt")
        replied = (await live.until("permission.v2.replied"))[-1]["data"]
    assert (replied["requestID"], replied["reply"]) == (request["id"], "reject")
    assert database_check.dump(folders.database)["pending_request"] == []


async def asked_in_time(root: Path) -> tuple[str, dict[str, int]]:
    """What the model is told when no person answers, and the live events meanwhile."""
    model = ScriptedModel()
    model.turn(tool_call("write", {"path": "a.env", "content": "x"})).turn(says("well then"))
    (root / "project").mkdir()
    (root / "project" / "opencode.json").write_text(
        '{"permissions": [{"action": "edit", "resource": "*", "effect": "ask"}]}'
    )
    seen: dict[str, int] = {}
    async with open_wire_host(
        str(root / "project"),
        data_dir=str(root / "data"),
        permission_timeout=0.05,
        models={"scripted/one": model},
    ) as perdure:
        session = await perdure.sessions.create(model={"providerID": "scripted", "id": "one"})
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            listening = group.create_task(listen(perdure, seen))
            await perdure.sessions.prompt(session["id"], text="write it")
            await perdure.sessions.wait(session["id"])
            listening.cancel()
        page = await perdure.sessions.messages(session["id"], order="asc")
    (part,) = cast("JsonObject", page.items[1])["content"]
    return part["state"]["error"]["message"], seen


async def listen(perdure: WireHost, seen: dict[str, int]) -> None:
    """Note what is heard, and as the how-manieth."""
    async for event in perdure.events.subscribe():
        seen.setdefault(event["type"], len(seen))


async def test_a_person_who_does_not_answer_in_time_has_refused(tmp_path: Path) -> None:
    message, seen = await asked_in_time(tmp_path)
    assert message == "edit a.env needs a person's approval, and nobody answered in time."
    assert seen["permission.v2.asked"] < seen["permission.v2.replied"]


async def test_what_waits_in_another_server_is_listed_in_its_order(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as a, server_process(folders, "b") as b:
        session = await a.api.create()
        path = f"/api/session/{session}/permission"
        for number in range(50):
            await a.api.post(path, {"action": "edit", "resources": [f"{number}"]})
        listed = await pending(b.api, session)
        assert [item["resources"] for item in listed] == [[f"{number}"] for number in range(50)]
