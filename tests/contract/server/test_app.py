"""The endpoints, from bytes on a socket to the runtime behind and back."""

import gzip
from collections.abc import AsyncGenerator

import pytest

from perdure.schema import codec
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.query import SessionQuery
from perdure.server.app import HANDLERS, make_app
from tests.contract.server.fake_runtime import (
    SESSION,
    Stage,
    call,
    connected,
    listening,
    message_row,
    settings,
)
from tests.requirements import requirement

ONE = f"/api/session/{SESSION}"


@pytest.fixture
async def stage() -> Stage:
    return Stage()


@pytest.fixture
async def port(stage: Stage) -> AsyncGenerator[int]:
    async with listening(stage.app(settings(body_bytes_max=100_000))) as (_, number):
        yield number


async def test_the_app_is_not_made_with_a_handler_missing_or_left_over(stage: Stage) -> None:
    fewer = {name: handler for name, handler in HANDLERS.items() if name != "v2.health.get"}
    more = {**HANDLERS, "v2.health.nope": HANDLERS["v2.health.get"]}
    for handlers in (fewer, more):
        with pytest.raises(ValueError, match=r"v2\.health"):
            make_app(stage.services(), settings(), handlers)


async def test_health_and_location_are_bare(port: int) -> None:
    assert (await call(port, "GET", "/api/health")).body == b'{"healthy":true}'
    answer = await call(port, "GET", "/api/location?location[directory]=/a%20b")
    assert answer.json() == {"directory": "/a b", "project": {"id": "global", "directory": "/"}}


@pytest.mark.parametrize(
    "path",
    [
        "/api/agent",
        "/api/model",
        "/api/provider",
        "/api/provider/fake",
        "/api/skill",
        "/api/reference",
    ],
)
async def test_location_routes_answer_with_their_location(port: int, path: str) -> None:
    body = (await call(port, "GET", path)).json()
    assert list(body) == ["location", "data"]
    assert body["location"]["directory"] == "/work/here"


async def test_skills_and_references_have_the_published_shape(port: int) -> None:
    assert (await call(port, "GET", "/api/skill")).json()["data"] == [
        {"name": "tea", "location": "/skills/tea.md", "content": "Boil.", "slash": True}
    ]
    assert (await call(port, "GET", "/api/reference")).json()["data"] == [
        {
            "name": "notes",
            "path": "/repos/notes",
            "source": {"type": "git", "repository": "ada/notes", "branch": "main"},
        }
    ]


async def test_the_active_sessions_are_not_taken_for_a_session_of_that_name(port: int) -> None:
    answer = await call(port, "GET", "/api/session/active")
    assert answer.json() == {"data": {SESSION: {"type": "running"}}}


@requirement("S143")
async def test_create_without_a_body_takes_the_location_of_the_request(
    port: int, stage: Stage
) -> None:
    await call(port, "POST", "/api/session")
    await call(port, "POST", "/api/session", None, {"x-opencode-directory": "%2Fa%20b"})
    await call(port, "POST", "/api/session", b'{"location":{"directory":"/c"}}')
    await call(port, "POST", "/api/session", b'{"id":null,"agent":null,"location":null}')
    locations = [made[4] for made in stage.sessions.calls]
    assert locations == [LocationRef(path) for path in ("/work/here", "/a b", "/c", "/work/here")]


async def test_a_prompt_has_the_defaults_of_the_contract(port: int, stage: Stage) -> None:
    answer = await call(port, "POST", f"{ONE}/prompt", b'{"prompt":{"text":"hi"},"extra":1}')
    assert answer.json()["data"]["prompt"] == {"text": "hi"}
    await call(
        port,
        "POST",
        f"{ONE}/prompt",
        b'{"prompt":{"text":""},"id":"msg_x","delivery":"queue","resume":false}',
    )
    assert [asked[3:] for asked in stage.sessions.calls] == [
        (None, "steer", True),
        ("msg_x", "queue", False),
    ]


async def test_a_taken_prompt_id_is_a_conflict(port: int) -> None:
    body = b'{"prompt":{"text":""},"id":"msg_taken"}'
    answer = await call(port, "POST", f"{ONE}/prompt", body)
    assert (answer.status, answer.json()["resource"]) == (409, "msg_taken")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("interrupt", None),
        ("agent", b'{"agent":"plan"}'),
        ("model", b'{"model":{"id":"m","providerID":"p"}}'),
    ],
)
async def test_nothing_to_say_is_said_with_no_body_and_no_type(
    port: int, path: str, body: bytes | None
) -> None:
    answer = await call(port, "POST", f"{ONE}/{path}", body)
    assert (answer.status, answer.body) == (204, b"")
    assert "content-type" not in answer.headers
    assert "content-length" not in answer.headers


@requirement("S138")
async def test_messages_one_by_one(port: int) -> None:
    assert (await call(port, "GET", f"{ONE}/message/msg_2")).json() == {"data": {"id": "msg_2"}}
    unknown = await call(port, "GET", f"{ONE}/message/msg_9")
    foreign = await call(port, "GET", "/api/session/ses_two/message/msg_2")
    assert (unknown.status, foreign.status) == (404, 404)
    assert foreign.json()["_tag"] == unknown.json()["_tag"] == "MessageNotFoundError"
    bad = await call(port, "GET", f"{ONE}/message/xx")
    assert (bad.status, bad.json()["kind"]) == (400, "Params")


async def test_context_and_history_pass_stored_json_through(port: int, stage: Stage) -> None:
    context = (await call(port, "GET", f"{ONE}/context")).json()["data"]
    assert [message["id"] for message in context] == [f"msg_{number}" for number in range(1, 6)]
    answer = await call(port, "GET", f"{ONE}/history?after=3&limit=1e1")
    assert answer.body == b'{"data":[{"seq":1},{"seq":2}],"hasMore":true}'
    await call(port, "GET", f"{ONE}/history")
    assert [asked[2:] for asked in stage.sessions.calls] == [(3, 10), (-1, 50)]


@requirement("S137")
async def test_messages_can_be_walked_to_the_end_and_back(port: int) -> None:
    path = f"{ONE}/message"
    first = (await call(port, "GET", f"{path}?limit=2&order=asc")).json()
    assert "previous" not in first["cursor"]
    second = (await call(port, "GET", f"{path}?cursor={first['cursor']['next']}")).json()
    third = (await call(port, "GET", f"{path}?cursor={second['cursor']['next']}")).json()
    assert "next" not in third["cursor"]
    walked = [item["id"] for page in (first, second, third) for item in page["data"]]
    assert walked == [f"msg_{number}" for number in range(1, 6)]
    back = (await call(port, "GET", f"{path}?cursor={third['cursor']['previous']}")).json()
    assert back["data"] == second["data"]
    wider = (await call(port, "GET", f"{path}?limit=3&cursor={first['cursor']['next']}")).json()
    assert len(wider["data"]) == 3


@requirement("S137")
async def test_a_message_cursor_is_for_its_own_session_and_order(port: int) -> None:
    page = (await call(port, "GET", f"{ONE}/message?limit=2")).json()
    cursor = page["cursor"]["next"]
    both = await call(port, "GET", f"{ONE}/message?order=asc&cursor={cursor}")
    assert (both.status, both.json()["message"]) == (400, "Cursor cannot be combined with order")
    foreign = await call(port, "GET", f"/api/session/ses_two/message?cursor={cursor}")
    assert (foreign.status, foreign.json()["_tag"]) == (400, "InvalidCursorError")
    assert (await call(port, "GET", f"{ONE}/message?cursor=")).status == 200


async def test_an_empty_page_has_no_cursors(port: int) -> None:
    answer = await call(port, "GET", "/api/session/ses_two/message")
    assert answer.body == b'{"data":[],"cursor":{}}'


@requirement("S136")
async def test_a_session_cursor_is_the_whole_query(port: int, stage: Stage) -> None:
    here = "directory=/work/here"
    page = (await call(port, "GET", f"/api/session?limit=1&{here}&order=asc")).json()
    assert list(page["cursor"]) == ["next"]
    cursor = f"cursor={page['cursor']['next']}"
    # A client made for a directory adds it to every request by itself.
    assert (await call(port, "GET", f"/api/session?{cursor}&{here}")).status == 200
    _, query, limit, anchor = stage.sessions.calls[-1]
    assert query == SessionQuery(directory="/work/here", order="asc")
    assert (limit, anchor is not None) == (1, True)
    for other in ("order=asc", "search=x", "project=p", "subpath=s", "directory=/other"):
        refused = await call(port, "GET", f"/api/session?{cursor}&{other}")
        assert (refused.status, refused.json()["_tag"]) == (400, "InvalidCursorError"), other
    assert (await call(port, "GET", "/api/session?cursor=")).status == 400


async def test_a_session_page_is_capped(port: int, stage: Stage) -> None:
    await call(port, "GET", "/api/session?limit=100000")
    assert stage.sessions.calls[-1][2] == 200


@pytest.mark.parametrize(
    "session_id", ["abc", "ses", "sesX", "ses_", "ses_a%2Fb", "ses_" + "x" * 200]
)
async def test_a_session_id_is_checked_before_anything_else(port: int, session_id: str) -> None:
    answer = await call(port, "POST", f"/api/session/{session_id}/prompt", b"{bad")
    assert (answer.status, answer.json()) == (
        400,
        {"_tag": "InvalidRequestError", "message": "Invalid session ID", "field": "sessionID"},
    )


async def test_an_unknown_session_is_told_before_a_bad_body(port: int) -> None:
    answer = await call(port, "POST", "/api/session/ses_none/prompt", b"{bad")
    assert (answer.status, answer.json()["sessionID"]) == (404, "ses_none")
    assert (await call(port, "GET", "/api/session/ses_none/event")).status == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{bad", "Malformed JSON"),
        (b'{"prompt":{"text":"a"}', "Malformed JSON"),
        (b'{"prompt":{"text":NaN}}', "Malformed JSON"),
        (b'{"prompt":{"text":"\xff"}}', "Malformed JSON"),
        (b'{"prompt":{"text":"\\ud800 "}}', "Malformed JSON"),
        (b'{"x":' + b"[" * 50_000, "Malformed JSON"),
        (b'{"prompt":' + b'{"a":' * 9_000 + b"1", "Malformed JSON"),
        (b"", "Expected object, got undefined"),
        (b"null", "Expected object, got null"),
        (b"[]", "Expected object, got []"),
        (b'{"prompt":{"text":3},"id":"x"}', "Expected string, got 3"),
        (b'{"prompt":{"text":' + b"9" * 5_000 + b"}}", ""),
    ],
)
async def test_a_bad_body_is_the_callers_fault(
    port: int, stage: Stage, body: bytes, said: str
) -> None:
    answer = await call(port, "POST", f"{ONE}/prompt", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert answer.json()["message"].startswith(said)
    assert stage.sessions.calls == []


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json-patch+json"},
        {"content-type": ""},
        {"content-encoding": "gzip"},
    ],
)
async def test_only_json_that_says_so_is_read(port: int, headers: dict[str, str]) -> None:
    answer = await call(port, "POST", f"{ONE}/prompt", b'{"prompt":{"text":"a"}}', headers)
    assert (answer.status, answer.json()["_tag"]) == (415, "UnsupportedMediaTypeError")


async def test_a_body_that_does_not_say_what_it_is_is_refused(port: int, stage: Stage) -> None:
    async with connected(port) as client:
        await client.say(
            b"POST /api/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
        )
        assert (await client.answer()).status == 415
    assert stage.sessions.calls == []


async def test_a_charset_beside_the_type_is_fine(port: int) -> None:
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert (await call(port, "POST", "/api/session", b"{}", headers)).status == 200


async def test_a_body_that_is_too_large_is_refused_announced_or_not(port: int) -> None:
    async with connected(port) as client:
        await client.say(
            b"POST /api/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100001\r\n\r\n"
        )
        announced = await client.answer()
    assert (announced.status, announced.json()["limit"]) == (413, 100_000)
    async with connected(port) as client:
        await client.say(
            b"POST /api/session HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for _ in range(4):
            client.writer.write(b"8000\r\n" + b" " * 0x8000 + b"\r\n")
        assert (await client.answer()).status == 413


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/", 404, None),
        ("GET", "/api/nope", 404, None),
        ("GET", "/api//session", 404, None),
        ("GET", "/api/session/ses_one/nope", 404, None),
        ("POST", "/api/session/ses_one", 405, "DELETE, GET, HEAD, PATCH"),
        ("PUT", "/api/session", 405, "GET, HEAD, POST"),
        ("OPTIONS", "/api/session/ses_one/prompt", 405, "POST"),
    ],
)
async def test_what_is_not_there_is_said_in_json(
    port: int, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = await call(port, method, path)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)
    assert answer.headers["content-type"] == "application/json"
    assert "_tag" in answer.json()


async def test_a_slash_at_the_end_makes_no_difference(port: int) -> None:
    assert (await call(port, "GET", "/api/session/")).status == 200
    assert (await call(port, "GET", f"{ONE}/")).status == 200


async def test_head_tells_what_get_would(port: int) -> None:
    got = await call(port, "GET", ONE)
    head = await call(port, "HEAD", ONE)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    stream = await call(port, "HEAD", "/api/event")
    assert stream.headers["content-type"] == "text/event-stream"


async def test_large_json_is_compressed_for_those_who_can_read_it(port: int, stage: Stage) -> None:
    stage.sessions.messages_of[SESSION] = [message_row(number) for number in range(150)]
    plain = await call(port, "GET", f"{ONE}/context")
    packed = await call(port, "GET", f"{ONE}/context", None, {"accept-encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    for encoding in ("identity", "gzip;q=0", "gzip; q=0.0, br"):
        answer = await call(port, "GET", f"{ONE}/context", None, {"accept-encoding": encoding})
        assert "content-encoding" not in answer.headers
    small = await call(port, "GET", "/api/health", None, {"accept-encoding": "gzip"})
    assert "content-encoding" not in small.headers


async def test_a_very_large_answer_is_compressed_too(port: int, stage: Stage) -> None:
    stage.sessions.messages_of[SESSION] = [message_row(number) for number in range(30_000)]
    packed = await call(port, "GET", f"{ONE}/context", None, {"accept-encoding": "gzip"})
    assert len(codec.decode_any(gzip.decompress(packed.body))["data"]) == 30_000


async def test_a_defect_gives_a_reference_and_no_secret(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await call(port, "GET", "/api/session/ses_broken")
    body = answer.json()
    assert (answer.status, body["_tag"]) == (500, "UnknownError")
    assert len(body["ref"]) == len("err_") + 8
    assert b"hunter2" not in answer.body
    assert body["ref"] in caplog.text


@pytest.mark.parametrize(
    "query",
    [
        "location[directory]=relative",
        "location[directory]=/missing",
        "location[directory]=/a%00b",
        "location[workspace]=zz",
        'location={"directory":"/x"}',
    ],
)
async def test_a_bad_location_is_the_callers_fault(port: int, query: str) -> None:
    answer = await call(port, "GET", f"/api/agent?{query.replace('{', '%7B').replace('}', '%7D')}")
    assert (answer.status, answer.json()["field"]) == (400, "location")


async def test_a_relative_location_in_a_body_is_the_callers_fault(port: int) -> None:
    answer = await call(port, "POST", "/api/session", b'{"location":{"directory":"x"}}')
    assert (answer.status, answer.json()["field"]) == (400, "location")


@requirement("S174")
@pytest.mark.parametrize(
    ("query", "headers", "directory", "workspace"),
    [
        ("", {}, "/work/here", None),
        ("location%5Bdirectory%5D=/q&location[directory]=/r", {}, "/q", None),
        ("location[directory]=/q", {"x-opencode-directory": "/h"}, "/q", None),
        ("location[directory]=", {"x-opencode-directory": "%2Fh%20x"}, "/h x", None),
        ("", {"x-opencode-directory": "/100%"}, "/100%", None),
        ("", {"x-opencode-directory": "/%ff"}, "/%ff", None),
        ("directory=/flat", {}, "/work/here", None),
        ("location[workspace]=wrk_1", {}, "/work/here", "wrk_1"),
        ("", {"x-opencode-workspace": "wrk_2"}, "/work/here", "wrk_2"),
    ],
)
async def test_a_location_comes_from_the_query_then_the_headers_then_the_server(
    port: int, query: str, headers: dict[str, str], directory: str, workspace: str | None
) -> None:
    body = (await call(port, "GET", f"/api/location?{query}", None, headers)).json()
    assert (body["directory"], body.get("workspaceID")) == (directory, workspace)


async def test_session_routes_do_not_care_what_location_a_request_names(port: int) -> None:
    headers = {"x-opencode-directory": "relative"}
    assert (await call(port, "GET", f"{ONE}?location=x", None, headers)).status == 200


async def test_what_a_client_supplies_as_an_id_is_kept(port: int) -> None:
    answer = await call(port, "POST", "/api/session", b'{"id":"ses_mine"}')
    assert answer.json()["data"]["id"] == SessionID("ses_mine")
