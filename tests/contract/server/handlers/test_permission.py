"""The permission routes: their shapes, their refusals, and the order in which they refuse."""

from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import quote

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.server.app import HANDLERS
from perdure.server.call import Call
from perdure.server.handlers import permission
from tests.contract.server.served_runtime import SESSION, Backend, open_backend
from tests.requirements import requirement
from tests.support.raw_http import Answer, call

PERMISSION = f"/api/session/{SESSION}/permission"
SAVED = "/api/permission/saved"
WHOLE: JsonObject = {
    "action": "bash",
    "resources": ["ls", "pwd"],
    "save": ["ls *"],
    "metadata": {"why": [1, None]},
    "source": {"type": "tool", "messageID": "msg_x", "callID": "call_1"},
}


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncGenerator[Backend]:
    """A project whose agents must ask before every command."""
    ask = {"action": "bash", "resource": "*", "effect": "ask"}
    async with open_backend(tmp_path, permissions=[ask]) as opened:
        yield opened


async def pending(port: int) -> list[JsonObject]:
    return (await call(port, "GET", PERMISSION)).json()["data"]


async def post(port: int, path: str, body: object) -> Answer:
    return await call(port, "POST", path, codec.encode(body))


async def created(port: int, **fields: object) -> str:
    answer = await post(port, PERMISSION, {**WHOLE, **fields})
    assert answer.status == 200, answer.body
    return answer.json()["data"]["id"]


@requirement("S177", "S179")
async def test_a_request_is_created_listed_found_and_answered(port: int) -> None:
    answer = await post(port, PERMISSION, {**WHOLE, "id": "per_mine", "agent": "build"})
    assert answer.json() == {"data": {"id": "per_mine", "effect": "ask"}}
    request = {"id": "per_mine", "sessionID": SESSION, **WHOLE}
    assert (await call(port, "GET", PERMISSION)).json() == {"data": [request]}
    assert (await call(port, "GET", f"{PERMISSION}/per_mine")).json() == {"data": request}
    body = {"reply": "reject", "message": "use make"}
    replied = await post(port, f"{PERMISSION}/per_mine/reply", body)
    assert (replied.status, replied.body) == (204, b"")
    assert "content-type" not in replied.headers
    assert (await call(port, "GET", PERMISSION)).json() == {"data": []}


async def test_the_rules_are_those_of_the_agent_that_is_named(port: int) -> None:
    answer = await post(port, PERMISSION, {**WHOLE, "agent": "no-such-agent"})
    assert answer.json()["data"]["effect"] == "deny"
    answer = await post(port, PERMISSION, {**WHOLE, "agent": "brief"})
    assert answer.json()["data"]["effect"] == "allow"
    assert await pending(port) == []


async def test_the_message_of_a_rejection_reaches_the_runtime(backend: Backend) -> None:
    heard: list[tuple[str, str | None]] = []

    async def reply(call: Call[None, permission.ReplyPermission]) -> None:
        heard.append((call.body.reply, call.body.message))
        await permission.reply(call)

    async with backend.port(handlers={**HANDLERS, "v2.session.permission.reply": reply}) as port:
        request_id = await created(port)
        body = {"reply": "reject", "message": "use make"}
        assert (await post(port, f"{PERMISSION}/{request_id}/reply", body)).status == 204
    assert heard == [("reject", "use make")]


async def test_what_is_not_given_is_left_out_and_null_counts_as_not_given(port: int) -> None:
    nothing = dict.fromkeys(("id", "save", "metadata", "source", "agent"))
    await post(port, PERMISSION, {"action": "bash", "resources": ["ls"], **nothing})
    (request,) = await pending(port)
    assert request == {
        "id": request["id"],
        "sessionID": SESSION,
        "action": "bash",
        "resources": ["ls"],
    }


@requirement("S179")
async def test_requests_of_a_location_come_with_it_and_approvals_do_not(port: int) -> None:
    request_id = await created(port)
    body = (await call(port, "GET", "/api/permission/request")).json()
    assert list(body) == ["location", "data"]
    assert [request["id"] for request in body["data"]] == [request_id]
    await post(port, f"{PERMISSION}/{request_id}/reply", {"reply": "always"})
    for query in ("", "?projectID=", "?projectID=global"):
        answer = await call(port, "GET", f"{SAVED}{query}")
        (saved,) = answer.json()["data"]
        expected = {"projectID": "global", "action": "bash", "resource": "ls *"}
        where = {"scope": "project", "directory": saved["directory"]}
        assert answer.json() == {"data": [{"id": saved["id"], **expected, **where}]}
    assert (await call(port, "GET", f"{SAVED}?projectID=p")).json() == {"data": []}


@requirement("S179")
async def test_an_approval_is_removed(port: int) -> None:
    request_id = await created(port)
    await post(port, f"{PERMISSION}/{request_id}/reply", {"reply": "always"})
    (saved,) = (await call(port, "GET", SAVED)).json()["data"]
    answer = await call(port, "DELETE", f"{SAVED}/{saved['id']}")
    assert (answer.status, answer.body) == (204, b"")
    assert (await call(port, "GET", SAVED)).json() == {"data": []}


@requirement("S179")
@pytest.mark.parametrize("rule_id", ["psv_1", "nope", "a/b", "../saved", "\u00e9"])
async def test_an_approval_may_have_any_id(backend: Backend, rule_id: str) -> None:
    removed: list[str] = []

    async def remove(call: Call[None, None]) -> None:
        removed.append(call.params["id"])
        await permission.remove_saved(call)

    async with backend.port(handlers={**HANDLERS, "v2.permission.saved.remove": remove}) as port:
        answer = await call(port, "DELETE", f"{SAVED}/{quote(rule_id, safe='')}")
    assert (answer.status, answer.body) == (204, b"")
    assert removed == [rule_id]


@pytest.mark.parametrize("path", ["/api/permission/request", "/api/permission/saved"])
async def test_a_location_that_cannot_be_one_is_refused(port: int, path: str) -> None:
    answer = await call(port, "GET", f"{path}?location[directory]=/missing")
    assert (answer.status, answer.json()["field"]) == (400, "location")


async def test_a_pending_id_cannot_be_used_again(port: int) -> None:
    await created(port, id="per_dup")
    answer = await post(port, PERMISSION, {**WHOLE, "id": "per_dup"})
    assert answer.status == 409
    assert answer.json() == {
        "_tag": "ConflictError",
        "resource": "per_dup",
        "message": "Permission request already exists: per_dup",
    }


async def test_unknown_settled_and_foreign_requests_are_answered_alike(port: int) -> None:
    request_id = await created(port)
    foreign = f"/api/session/ses_two/permission/{request_id}"
    for path in (f"{PERMISSION}/per_nope", foreign):
        answers = (
            await call(port, "GET", path),
            await post(port, f"{path}/reply", {"reply": "once"}),
        )
        for answer in answers:
            assert answer.status == 404
            assert answer.json()["_tag"] == "PermissionNotFoundError"
            assert answer.json()["requestID"] == path.rpartition("/")[2]
    reply = f"{PERMISSION}/{request_id}/reply"
    assert (await post(port, reply, {"reply": "always"})).status == 204
    assert (await post(port, reply, {"reply": "once"})).status == 404


@pytest.mark.parametrize("rest", ["", "/per_1", "/per_1/reply"])
async def test_an_unknown_session_comes_before_everything_else(port: int, rest: str) -> None:
    method = "POST" if rest.endswith("reply") or not rest else "GET"
    for session, status, tag in (
        ("ses_nobody", 404, "SessionNotFoundError"),
        ("nobody", 400, "InvalidRequestError"),
    ):
        path = f"/api/session/{session}/permission{rest}"
        answer = await call(port, method, path, b"{bad" if method == "POST" else None)
        assert (answer.status, answer.json()["_tag"]) == (status, tag)


async def test_a_request_id_of_another_shape_is_refused(port: int) -> None:
    answer = await post(port, f"{PERMISSION}/zz/reply", {"reply": "maybe"})
    assert (answer.status, answer.json()["kind"]) == (400, "Params")
    assert answer.json()["message"] == (
        'Expected a string starting with "per_", got "zz"\n  at ["requestID"]'
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Expected object, got undefined"),
        (b"{bad", "Malformed JSON"),
        (b"[]", "Expected object, got []"),
        (b'{"action":"x"}', 'Missing key\n  at ["resources"]'),
        (b'{"action":1,"resources":"a"}', 'at ["action"]'),
        (b'{"action":1,"resources":"a"}', 'Expected array, got "a"\n  at ["resources"]'),
        (b'{"action":"x","resources":[1]}', 'at ["resources"][0]'),
        (b'{"action":"x","resources":[],"id":"zz"}', 'starting with "per_"'),
        (b'{"action":"x","resources":[],"source":{"type":"tool"}}', '["source"]["messageID"]'),
        (b'{"action":"x","resources":[],"metadata":[]}', 'at ["metadata"]'),
        (b'{"action":"\\ud800","resources":[]}', "surrogate"),
    ],
)
async def test_a_request_that_does_not_fit_is_refused_and_not_kept(
    port: int, body: bytes, message: str
) -> None:
    answer = await call(port, "POST", PERMISSION, body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert await pending(port) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"reply": "maybe"}, 'got "maybe"\n  at ["reply"]'),
        ({}, 'Missing key\n  at ["reply"]'),
        ({"reply": "reject", "message": 1}, 'at ["message"]'),
    ],
)
async def test_a_word_that_does_not_fit_settles_nothing(
    port: int, body: JsonObject, message: str
) -> None:
    request_id = await created(port)
    answer = await post(port, f"{PERMISSION}/{request_id}/reply", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert [each["id"] for each in await pending(port)] == [request_id]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", PERMISSION, "GET, HEAD, POST"),
        ("GET", f"{PERMISSION}/per_1/reply", "POST"),
        ("GET", "/api/permission/saved/psv_1", "DELETE"),
    ],
)
async def test_other_methods_are_named(port: int, method: str, path: str, allowed: str) -> None:
    answer = await call(port, method, path)
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
