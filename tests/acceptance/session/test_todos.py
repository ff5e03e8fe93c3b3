"""What the model means to do: written by a tool, durable with its result, read over HTTP."""

from perdure.client import WireClient
from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def todo(content: str, status: str = "pending") -> JsonObject:
    return {"content": content, "status": status, "priority": "high"}


def write(*todos: JsonObject) -> Call:
    return Call("todowrite", {"todos": list(todos)})


async def todos(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/todo"))["data"]


@requirement("S178", "S182")
async def test_the_list_is_read_followed_and_heard_as_it_was_written(
    api: Api, provider: ScriptedProvider
) -> None:
    given = [todo("find it", "completed"), todo("fix it")]
    provider.then(calls(write(*given)), text("so be it"))
    session = await api.create()
    assert await todos(api, session) == []
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "plan")
        # First the durable event, then the live one of the contract.
        await live.until("session.next.todo.updated")
        told = (await live.until("todo.updated"))[-1]["data"]
    await api.wait(session)
    assert told == {"sessionID": session, "todos": given}
    assert await todos(api, session) == given
    facts = await api.facts(session)
    assert facts.index("tool.success") == facts.index("todo.updated") + 1
    (event,) = [e for e in await api.history(session) if e["type"].endswith("todo.updated")]
    _, assistant, _ = await api.messages(session)
    assert (event["durable"]["version"], event["data"]["todos"]) == (1, given)
    assert event["data"]["assistantMessageID"] == assistant["id"]
    assert assistant["content"][0]["state"]["structured"] == {"todos": given}
    async with WireClient(f"http://127.0.0.1:{api.port}") as client:
        assert await client.sessions.todos(session) == tuple(given)


@requirement("S182")
async def test_a_new_list_takes_the_place_of_the_one_before_also_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(write(todo("one"))), calls(write(todo("two"))), text("done"))
    async with running(folders) as before:
        session = await before.api.create()
        await before.api.ask(session, "plan")
        assert await todos(before.api, session) == [todo("two")]
    async with running(folders) as after:
        assert await todos(after.api, session) == [todo("two")]
    await database_check.check(folders.database)


async def test_a_revert_brings_back_the_list_of_then(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    boundaries: list[str] = []
    for name in ("first", "second"):
        provider.then(calls(write(todo(name))), text("done"))
        boundaries.append((await api.ask(session, name))[-1]["id"])
    assert await todos(api, session) == [todo("second")]
    await api.post(f"/api/session/{session}/revert/stage", {"messageID": boundaries[0]})
    # Staging hides nothing yet.
    assert await todos(api, session) == [todo("second")]
    await api.post(f"/api/session/{session}/revert/commit")
    assert await todos(api, session) == [todo("first")]


async def test_a_list_that_cannot_be_is_refused_and_the_old_one_stays(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    provider.then(calls(write(todo("one"))), text("done"))
    await api.ask(session, "plan")
    for wrong in ([todo("x")] * (limits.TODOS_MAX + 1), [todo("x" * limits.TODOS_BYTES_MAX)]):
        provider.then(calls(write(*wrong)), text("sorry"))
        messages = await api.ask(session, "more")
        assert messages[-2]["content"][0]["state"]["status"] == "error"
        assert await todos(api, session) == [todo("one")]


async def test_a_session_that_does_not_exist_has_no_list(api: Api) -> None:
    answer = await api.call("GET", "/api/session/ses_nobody/todo")
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


@requirement("S178")
async def test_an_agent_that_may_not_write_the_list_is_not_offered_the_tool(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create(agent="general")
    await api.ask(session, "plan")
    offered = {item["function"]["name"] for item in provider.requests[-1].body["tools"]}
    assert "todowrite" not in offered
    assert "read" in offered
