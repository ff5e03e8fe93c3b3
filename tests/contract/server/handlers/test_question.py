"""The question routes: their shapes, their refusals, and the order in which they refuse."""

from collections.abc import AsyncGenerator

import pytest

from perdure.schema import codec
from perdure.schema.approval.question import (
    Question,
    QuestionOption,
    QuestionRequest,
    QuestionSource,
)
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, QuestionID, SessionID, ToolCallID
from tests.contract.server.fake_runtime import SESSION, Answer, Stage, call, listening
from tests.requirements import requirement

QUESTION = f"/api/session/{SESSION}/question"
WHOLE: JsonObject = {
    "id": "que_1",
    "sessionID": SESSION,
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "red", "description": "warm"}],
            "multiple": True,
            "custom": False,
        },
        {"question": "Why?", "header": "Reason", "options": []},
    ],
    "tool": {"messageID": "msg_1", "callID": "call_1"},
}


@pytest.fixture
async def stage() -> Stage:
    stage = Stage()
    option = QuestionOption(label="red", description="warm")
    request = QuestionRequest(
        id=QuestionID("que_1"),
        session_id=SessionID(SESSION),
        questions=(
            Question("Which colour?", "Colour", (option,), multiple=True, custom=False),
            Question("Why?", "Reason", ()),
        ),
        tool=QuestionSource(message_id=MessageID("msg_1"), call_id=ToolCallID("call_1")),
    )
    stage.questions.requests[request.id] = request
    return stage


@pytest.fixture
async def port(stage: Stage) -> AsyncGenerator[int]:
    async with listening(stage.app()) as (_, number):
        yield number


async def post(port: int, path: str, body: object) -> Answer:
    return await call(port, "POST", path, codec.encode(body))


@requirement("S185")
async def test_a_request_is_listed_and_answered(port: int, stage: Stage) -> None:
    assert (await call(port, "GET", QUESTION)).json() == {"data": [WHOLE]}
    assert (await call(port, "GET", "/api/session/ses_two/question")).json() == {"data": []}
    replied = await post(port, f"{QUESTION}/que_1/reply", {"answers": [["red"], []], "extra": 1})
    assert (replied.status, replied.body) == (204, b"")
    assert stage.questions.calls == [("reply", SESSION, "que_1", (("red",), ()))]
    assert (await call(port, "GET", QUESTION)).json() == {"data": []}


@requirement("S185")
@pytest.mark.parametrize("body", [None, b"", b"{}"])
async def test_a_request_is_rejected_without_a_body(
    port: int, stage: Stage, body: bytes | None
) -> None:
    rejected = await call(port, "POST", f"{QUESTION}/que_1/reject", body)
    assert (rejected.status, rejected.body) == (204, b"")
    assert stage.questions.calls == [("reject", SESSION, "que_1")]


@requirement("S185")
async def test_requests_of_a_location_come_with_it(port: int) -> None:
    body = (await call(port, "GET", "/api/question/request")).json()
    assert list(body) == ["location", "data"]
    assert body["data"] == [WHOLE]
    refused = await call(port, "GET", "/api/question/request?location[directory]=/missing")
    assert (refused.status, refused.json()["field"]) == (400, "location")


@pytest.mark.parametrize("path", [f"{QUESTION}/que_nope", "/api/session/ses_two/question/que_1"])
@pytest.mark.parametrize("verb", ["reply", "reject"])
async def test_unknown_and_foreign_requests_are_answered_alike(
    port: int, stage: Stage, path: str, verb: str
) -> None:
    answer = await post(port, f"{path}/{verb}", {"answers": [["red"], []]})
    request_id = path.rpartition("/")[2]
    assert answer.status == 404
    assert answer.json() == {
        "_tag": "QuestionNotFoundError",
        "requestID": request_id,
        "message": f"Question request not found: {request_id}",
    }
    assert list(stage.questions.requests) == ["que_1"]


@pytest.mark.parametrize("rest", ["", "/que_1/reply", "/que_1/reject"])
async def test_an_unknown_session_comes_before_everything_else(port: int, rest: str) -> None:
    method = "POST" if rest else "GET"
    for session, status, tag in (
        ("ses_nobody", 404, "SessionNotFoundError"),
        ("nobody", 400, "InvalidRequestError"),
    ):
        path = f"/api/session/{session}/question{rest}"
        answer = await call(port, method, path, b"{bad" if rest else None)
        assert (answer.status, answer.json()["_tag"]) == (status, tag)


@pytest.mark.parametrize("verb", ["reply", "reject"])
async def test_a_request_id_of_another_shape_is_refused(port: int, verb: str) -> None:
    answer = await post(port, f"{QUESTION}/per_1/{verb}", {"answers": 1})
    assert (answer.status, answer.json()["kind"]) == (400, "Params")
    assert 'starting with "que_"' in answer.json()["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Expected object, got undefined"),
        (b"{bad", "Malformed JSON"),
        (b"{}", 'Missing key\n  at ["answers"]'),
        (b'{"answers":null}', 'at ["answers"]'),
        (b'{"answers":["red"]}', 'at ["answers"][0]'),
        (b'{"answers":[["red"],[1]]}', 'at ["answers"][1][0]'),
        (b'{"answers":[["\\ud800"],[]]}', "surrogate"),
    ],
)
async def test_answers_of_another_shape_settle_nothing(
    port: int, stage: Stage, body: bytes, message: str
) -> None:
    answer = await call(port, "POST", f"{QUESTION}/que_1/reply", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert list(stage.questions.requests) == ["que_1"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", QUESTION, "GET, HEAD"),
        ("GET", f"{QUESTION}/que_1/reply", "POST"),
        ("DELETE", f"{QUESTION}/que_1/reject", "POST"),
    ],
)
async def test_other_methods_are_named(port: int, method: str, path: str, allowed: str) -> None:
    answer = await call(port, method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
