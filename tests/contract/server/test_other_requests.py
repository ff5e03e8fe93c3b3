"""Requests in other forms of the same operation, and fields that an operation does not have."""

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text

ONE = f"/api/session/{SESSION}"
QUESTION = {"question": "Which?", "header": "Q", "options": [{"label": "A", "description": "a"}]}


async def test_a_flat_prompt_is_the_same_prompt(port: int, backend: Backend) -> None:
    flat = {"text": "hi", "id": "msg_flat", "delivery": "queue", "resume": False}
    answer = await call(port, "POST", f"{ONE}/prompt", codec.encode(flat))
    receipt = answer.json()["data"]
    assert (receipt["id"], receipt["prompt"]) == ("msg_flat", {"text": "hi"})
    nested = {"prompt": {"text": "hi"}, "id": "msg_flat", "delivery": "queue", "resume": False}
    again = await call(port, "POST", f"{ONE}/prompt", codec.encode(nested))
    assert again.json()["data"] == receipt


async def test_a_session_is_renamed_by_either_route(port: int) -> None:
    renamed = await call(port, "POST", f"{ONE}/rename", b'{"title":"Posted"}')
    assert (renamed.status, renamed.json()["data"]["title"]) == (200, "Posted")
    assert (await call(port, "GET", f"{ONE}/rename")).status == 405


@pytest.mark.parametrize(("word", "body"), [("reply", b'{"answers":[["A"]]}'), ("reject", None)])
async def test_a_question_is_answered_by_its_older_route(
    word: str, body: bytes | None, port: int, backend: Backend
) -> None:
    backend.provider.then(calls(Call("question", {"questions": [QUESTION]})), text("Thanks."))
    prompt = b'{"text":"ask"}'
    assert (await call(port, "POST", f"{ONE}/prompt", prompt)).status == 200
    asked: list[JsonObject] = []
    while not asked:
        asked = (await call(port, "GET", f"{ONE}/question")).json()["data"]
    path = f"{ONE}/question/request/{asked[0]['id']}/{word}"
    assert (await call(port, "POST", path, body)).status == 204
    assert (await call(port, "GET", f"{ONE}/question")).json()["data"] == []


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        (f"{ONE}/prompt", {"prompt": {"text": "x"}, "system": "s", "tools": {}}, "system, tools"),
        (f"{ONE}/prompt", {"prompt": {"text": "x", "format": {}}}, "prompt.format"),
        (f"{ONE}/prompt", {"text": "x", "system": "s"}, "system"),
        (f"{ONE}/prompt", {"prompt": {"text": "x"}, "text": "y"}, "text"),
        (
            f"{ONE}/prompt",
            {"prompt": {"text": "x", "files": [{"uri": "data:,x", "colour": 1}]}},
            "prompt.files.0.colour",
        ),
        ("/api/session", {"permission": []}, "permission"),
        ("/api/session", {"model": {"id": "m", "providerID": "p", "size": 1}}, "model.size"),
        (f"{ONE}/rename", {"title": "x", "name": "y"}, "name"),
    ],
)
async def test_a_field_that_the_request_does_not_have_is_named(
    path: str, body: JsonObject, named: str, port: int, backend: Backend
) -> None:
    answer = await call(port, "POST", path, codec.encode(body))
    assert (answer.status, answer.json()["_tag"]) == (400, "InvalidRequestError")
    assert answer.json()["message"] == f"Unknown fields: {named}"
    assert await backend.count_events(SESSION) == 0


async def test_title_and_metadata_of_a_new_session_are_kept(port: int) -> None:
    given = {"title": "  My\nsession ", "metadata": {"ticket": 7, "tags": ["a"]}}
    made = (await call(port, "POST", "/api/session", codec.encode(given))).json()["data"]
    assert (made["title"], made["metadata"]) == ("My session", given["metadata"])
    found = (await call(port, "GET", f"/api/session/{made['id']}")).json()["data"]
    assert found == made
    forked = await call(port, "POST", f"/api/session/{made['id']}/fork", b"{}")
    assert forked.json()["data"]["metadata"] == given["metadata"]


@pytest.mark.parametrize(
    "given", [{"title": ""}, {"title": "x" * 501}, {"metadata": {"x": "y" * 20_000}}]
)
async def test_title_and_metadata_have_bounds(given: JsonObject, port: int) -> None:
    answer = await call(port, "POST", "/api/session", codec.encode(given))
    assert (answer.status, answer.json()["field"]) == (400, next(iter(given)))


async def test_the_page_at_the_root_says_what_this_is_and_shows_no_data(
    port: int, backend: Backend
) -> None:
    answer = await call(port, "GET", "/")
    page = answer.body.decode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 'href="/doc"' in page
    assert 'href="/openapi.json"' in page
    assert "script" not in page
    assert backend.here not in page
    assert SESSION not in page
