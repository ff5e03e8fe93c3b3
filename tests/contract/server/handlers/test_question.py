"""The question routes: their shapes, their refusals, and the order in which they refuse."""

import asyncio

import pytest

from perdure.schema import codec
from perdure.schema.approval.question import Question
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend
from tests.requirements import requirement
from tests.support.raw_http import PATIENCE_SECONDS, Answer, call
from tests.support.scripted_provider import Call, calls, text

QUESTION = f"/api/session/{SESSION}/question"
QUESTIONS: list[JsonObject] = [
    {
        "question": "Which colour?",
        "header": "Colour",
        "options": [{"label": "red", "description": "warm"}],
        "multiple": True,
    },
    {"question": "Why?", "header": "Reason", "options": []},
]


@pytest.fixture
async def request_id(backend: Backend, port: int) -> str:
    """The request of a Session whose model asks two questions."""
    backend.provider.then(calls(Call("question", {"questions": QUESTIONS}, "call_1")), text("done"))
    with backend.runtime.hub.subscribe() as live:
        await call(port, "POST", f"/api/session/{SESSION}/prompt", b'{"prompt":{"text":"hi"}}')
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"question.v2.asked" not in (await live.next() or b""):
                pass
    (found,) = await pending(port)
    return str(found["id"])


async def pending(port: int) -> list[JsonObject]:
    return (await call(port, "GET", QUESTION)).json()["data"]


async def wait_idle(port: int) -> None:
    await call(port, "POST", f"/api/session/{SESSION}/wait")


async def post(port: int, path: str, body: object) -> Answer:
    return await call(port, "POST", path, codec.encode(body))


@requirement("S185")
async def test_a_request_is_listed_and_answered(
    port: int, backend: Backend, request_id: str
) -> None:
    (listed,) = await pending(port)
    asking = (await call(port, "GET", f"/api/session/{SESSION}/message?limit=1")).json()["data"][0]
    assert listed == {
        "id": request_id,
        "sessionID": SESSION,
        "questions": QUESTIONS,
        "tool": {"messageID": asking["id"], "callID": "call_1"},
    }
    assert (await call(port, "GET", "/api/session/ses_two/question")).json() == {"data": []}
    body = {"answers": [["red"], []]}
    replied = await post(port, f"{QUESTION}/{request_id}/reply", body)
    assert (replied.status, replied.body) == (204, b"")
    assert await pending(port) == []
    told = await backend.provider.arrived(2)
    assert '"Which colour?" = "red"' in told.texts("tool")[-1]
    await wait_idle(port)


def test_a_question_that_takes_no_other_answer_says_so() -> None:
    shown = codec.to_json_value(Question("Why?", "Reason", (), custom=False))
    assert shown == {"question": "Why?", "header": "Reason", "options": [], "custom": False}


@requirement("S185")
@pytest.mark.parametrize("body", [None, b"", b"{}"])
async def test_a_request_is_rejected_without_a_body(
    port: int, request_id: str, body: bytes | None
) -> None:
    rejected = await call(port, "POST", f"{QUESTION}/{request_id}/reject", body)
    assert (rejected.status, rejected.body) == (204, b"")
    assert await pending(port) == []
    await wait_idle(port)


@requirement("S185")
async def test_requests_of_a_location_come_with_it(port: int, request_id: str) -> None:
    body = (await call(port, "GET", "/api/question/request")).json()
    assert list(body) == ["location", "data"]
    assert [each["id"] for each in body["data"]] == [request_id]
    refused = await call(port, "GET", "/api/question/request?location[directory]=/missing")
    assert (refused.status, refused.json()["field"]) == (400, "location")


@pytest.mark.parametrize("session", [SESSION, "ses_two"])
@pytest.mark.parametrize("verb", ["reply", "reject"])
async def test_unknown_and_foreign_requests_are_answered_alike(
    port: int, request_id: str, session: str, verb: str
) -> None:
    unknown = "que_nope" if session == SESSION else request_id
    path = f"/api/session/{session}/question/{unknown}/{verb}"
    answer = await post(port, path, {"answers": [["red"], []]})
    assert answer.status == 404
    assert answer.json() == {
        "_tag": "QuestionNotFoundError",
        "requestID": unknown,
        "message": f"Question request not found: {unknown}",
    }
    assert [each["id"] for each in await pending(port)] == [request_id]


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
    port: int, request_id: str, body: bytes, message: str
) -> None:
    answer = await call(port, "POST", f"{QUESTION}/{request_id}/reply", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert [each["id"] for each in await pending(port)] == [request_id]


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
