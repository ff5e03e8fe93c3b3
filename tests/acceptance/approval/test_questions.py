"""What a model does not know, a person answers: over HTTP, while the tool call waits."""

import asyncio

import pytest

from perdure.client import WireClient
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

COLOUR: JsonObject = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}],
}
SIZE: JsonObject = {"question": "Which size?", "header": "Size", "options": []}


def ask(*questions: JsonObject, id: str | None = None) -> Call:
    return Call("question", {"questions": list(questions)}, id)


async def waiting(api: Api, session: str) -> JsonObject:
    """Prompt a Session whose model asks; the request that its call waits for."""
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        return (await live.until("question.v2.asked"))[-1]["data"]


def path_of(request: JsonObject, verb: str) -> str:
    return f"/api/session/{request['sessionID']}/question/{request['id']}/{verb}"


async def pending(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/question"))["data"]


@requirement("S183", "S185")
async def test_a_call_waits_for_its_answers_and_the_model_is_told_them(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(ask(COLOUR, SIZE)), text("done"))
    session = await api.create()
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "do it")
        request = (await live.until("question.v2.asked"))[-1]["data"]
        assert request["questions"] == [COLOUR, SIZE]
        assert await pending(api, session) == [request]
        listed = await api.get("/api/question/request")
        assert listed["location"]["directory"] == str(folders.project)
        assert listed["data"] == [request]
        await api.post(path_of(request, "reply"), {"answers": [["red"], []]})
        replied = (await live.until("question.v2.replied"))[-1]["data"]
    await api.wait(session)
    assert replied == {
        "sessionID": session,
        "requestID": request["id"],
        "answers": [["red"], []],
    }
    _, assistant, _ = await api.messages(session)
    assert request["tool"] == {"messageID": assistant["id"], "callID": "call_0"}
    assert assistant["content"][0]["state"]["structured"] == {"answers": [["red"], []]}
    told = provider.requests[1].messages[-1]["content"]
    assert '"Which colour?" = "red"' in told
    assert '"Which size?" = (unanswered)' in told
    assert await pending(api, session) == []


@requirement("S183", "S185")
async def test_rejecting_stops_the_run_and_settles_the_step(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(ask(COLOUR)))
    session = await api.create()
    request = await waiting(api, session)
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.post(path_of(request, "reject"))
        rejected = (await live.until("question.v2.rejected"))[-1]["data"]
    await api.wait(session)
    assert rejected == {"sessionID": session, "requestID": request["id"]}
    _, assistant = await api.messages(session)
    assert "completed" in assistant["time"]
    state = assistant["content"][0]["state"]
    assert (state["status"], state["error"]["message"]) == ("error", "Tool execution interrupted")
    assert len(provider.requests) == 1
    provider.then(text("then something else"))
    assert (await api.ask(session, "go on"))[-1]["finish"] == "stop"


@requirement("S185")
@pytest.mark.parametrize("answers", [[], [["red", "blue"]], [["red"], []], [[""]]])
async def test_answers_that_do_not_fit_are_refused_and_the_question_still_waits(
    api: Api, provider: ScriptedProvider, answers: list[list[str]]
) -> None:
    provider.then(calls(ask(COLOUR)), text("done"))
    session = await api.create()
    request = await waiting(api, session)
    refused = await api.call("POST", path_of(request, "reply"), {"answers": answers})
    assert (refused.status, refused.tag) == (400, "InvalidRequestError")
    assert await pending(api, session) == [request]
    await api.post(path_of(request, "reply"), {"answers": [["my own"]]})
    await api.wait(session)
    assert (await api.messages(session))[-1]["finish"] == "stop"


@requirement("S185")
async def test_of_many_words_at_once_one_counts(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(ask(COLOUR)), text("done"))
    session = await api.create()
    request = await waiting(api, session)
    reply = path_of(request, "reply")
    body = {"answers": [["red"]]}
    answers = await asyncio.gather(*(api.call("POST", reply, body) for _ in range(20)))
    assert sorted(answer.status for answer in answers) == [204] + [404] * 19
    assert {answer.tag for answer in answers} == {None, "QuestionNotFoundError"}
    await api.wait(session)


async def test_interrupting_takes_the_question_away(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(ask(COLOUR)))
    session = await api.create()
    request = await waiting(api, session)
    await api.post(f"/api/session/{session}/interrupt")
    assert await pending(api, session) == []
    late = await api.call("POST", path_of(request, "reply"), {"answers": [["red"]]})
    assert (late.status, late.tag) == (404, "QuestionNotFoundError")


async def test_another_session_cannot_settle_it(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(ask(COLOUR)))
    session, other = await api.create(), await api.create()
    request = await waiting(api, session)
    for verb, body in (("reply", {"answers": [["red"]]}), ("reject", None)):
        foreign = path_of({**request, "sessionID": other}, verb)
        assert (await api.call("POST", foreign, body)).tag == "QuestionNotFoundError"
    assert await pending(api, session) == [request]


@requirement("S185")
async def test_the_client_lists_answers_and_rejects(api: Api, provider: ScriptedProvider) -> None:
    provider.then(calls(ask(COLOUR)), calls(ask(SIZE)))
    session = await api.create()
    first = await waiting(api, session)
    async with WireClient(f"http://127.0.0.1:{api.port}") as client:
        questions = client.sessions.questions
        assert await questions.list(session) == (first,)
        assert await client.questions.requests() == (first,)
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            await questions.reply(session, first["id"], [["blue"]])
            second = (await live.until("question.v2.asked"))[-1]["data"]
        await questions.reject(session, second["id"])
        await client.sessions.wait(session)
        assert await questions.list(session) == ()
