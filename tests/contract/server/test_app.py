"""The endpoints, from bytes on a socket to the runtime behind and back."""

import asyncio
import gzip
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.server.call import Call
from tests.contract.server.served_runtime import OTHER, SESSION, Backend, with_handler
from tests.requirements import requirement
from tests.support.raw_http import call, connected
from tests.support.scripted_provider import text

ONE = f"/api/session/{SESSION}"
TWO = f"/api/session/{OTHER}"


async def pending(port: int, session: str = ONE) -> list[JsonObject]:
    return (await call(port, "GET", f"{session}/inbox")).json()["data"]


async def test_health_and_location_are_bare(port: int, tmp_path: Path) -> None:
    assert (await call(port, "GET", "/api/health")).body == b'{"healthy":true}'
    (tmp_path / "a b").mkdir()
    answer = await call(port, "GET", f"/api/location?location[directory]={tmp_path}/a%20b")
    assert answer.json() == {
        "directory": f"{tmp_path}/a b",
        "project": {"id": "global", "directory": "/"},
    }


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
async def test_location_routes_answer_with_their_location(
    port: int, backend: Backend, path: str
) -> None:
    body = (await call(port, "GET", path)).json()
    assert list(body) == ["location", "data"]
    assert body["location"]["directory"] == backend.here


async def test_skills_and_references_have_the_published_shape(port: int, backend: Backend) -> None:
    project = backend.folders.project
    skill = project / ".opencode" / "skills" / "tea" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: tea\ndescription: Tea.\nslash: true\n---\nBoil.\n", encoding="utf-8"
    )
    references = codec.encode({"references": {"notes": {"path": "./notes"}}})
    (project / ".opencode" / "opencode.json").write_bytes(references)
    skills = (await call(port, "GET", "/api/skill")).json()["data"]
    (tea,) = (each for each in skills if each["name"] == "tea")
    assert tea == {
        "name": "tea",
        "description": "Tea.",
        "location": str(skill),
        "content": "Boil.",
        "slash": True,
    }
    assert (await call(port, "GET", "/api/reference")).json()["data"] == [
        {
            "name": "notes",
            "path": str(project / ".opencode" / "notes"),
            "source": {"type": "local", "path": "./notes"},
        }
    ]


async def test_the_active_sessions_are_not_taken_for_a_session_of_that_name(
    port: int, backend: Backend
) -> None:
    hold = asyncio.Event()
    backend.provider.then(text("working", hold=hold))
    await call(port, "POST", f"{ONE}/prompt", b'{"prompt":{"text":"hi"}}')
    await backend.provider.arrived(1)
    answer = await call(port, "GET", "/api/session/active")
    assert answer.json() == {"data": {SESSION: {"type": "running"}}}
    hold.set()


@requirement("S143")
async def test_create_without_a_body_takes_the_location_of_the_request(
    port: int, backend: Backend, tmp_path: Path
) -> None:
    named, header = tmp_path / "c", tmp_path / "a b"
    named.mkdir()
    header.mkdir()
    spelled = str(header).replace("/", "%2F").replace(" ", "%20")
    asked: list[tuple[bytes | None, dict[str, str]]] = [
        (None, {}),
        (None, {"x-opencode-directory": spelled}),
        (codec.encode({"location": {"directory": str(named)}}), {}),
        (b'{"id":null,"agent":null,"location":null}', {}),
    ]
    made = [await call(port, "POST", "/api/session", body, headers) for body, headers in asked]
    directories = [answer.json()["data"]["location"]["directory"] for answer in made]
    assert directories == [backend.here, str(header), str(named), backend.here]


async def test_a_prompt_has_the_defaults_of_the_contract(port: int, backend: Backend) -> None:
    answer = await call(port, "POST", f"{ONE}/prompt", b'{"prompt":{"text":"hi"}}')
    receipt = answer.json()["data"]
    assert (receipt["prompt"], receipt["delivery"]) == ({"text": "hi"}, "steer")
    await backend.provider.arrived(1)
    body = b'{"prompt":{"text":""},"id":"msg_x","delivery":"queue","resume":false}'
    receipt = (await call(port, "POST", f"{TWO}/prompt", body)).json()["data"]
    assert (receipt["id"], receipt["delivery"]) == ("msg_x", "queue")
    assert OTHER not in backend.runtime.sessions.active()
    assert [each["id"] for each in await pending(port, TWO)] == ["msg_x"]


async def test_a_prompt_names_where_its_session_works(port: int, backend: Backend) -> None:
    await call(port, "POST", f"{ONE}/prompt", b'{"prompt":{"text":"hi"},"resume":false}')
    (event,) = (await call(port, "GET", f"{ONE}/history")).json()["data"]
    assert event["location"] == {"directory": backend.here}


async def test_a_taken_prompt_id_is_a_conflict(port: int) -> None:
    body = b'{"prompt":{"text":"%b"},"id":"msg_taken","resume":false}'
    assert (await call(port, "POST", f"{ONE}/prompt", body % b"one")).status == 200
    answer = await call(port, "POST", f"{ONE}/prompt", body % b"another")
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
async def test_messages_one_by_one(port: int, backend: Backend) -> None:
    await backend.add_messages(SESSION, 5)
    found = await call(port, "GET", f"{ONE}/message/msg_2")
    assert (found.status, found.json()["data"]["id"]) == (200, "msg_2")
    unknown = await call(port, "GET", f"{ONE}/message/msg_9")
    foreign = await call(port, "GET", f"{TWO}/message/msg_2")
    assert (unknown.status, foreign.status) == (404, 404)
    assert foreign.json()["_tag"] == unknown.json()["_tag"] == "MessageNotFoundError"
    bad = await call(port, "GET", f"{ONE}/message/xx")
    assert (bad.status, bad.json()["kind"]) == (400, "Params")


async def test_context_and_history_pass_stored_json_through(port: int, backend: Backend) -> None:
    await backend.add_messages(SESSION, 60)
    sessions = backend.runtime.sessions
    context = await call(port, "GET", f"{ONE}/context")
    assert context.body == b'{"data":[%b]}' % b",".join(await sessions.context(SESSION))
    assert len(context.json()["data"]) == 60
    stored, _ = await sessions.history(SESSION, after=3, limit=10)
    answer = await call(port, "GET", f"{ONE}/history?after=3&limit=1e1")
    assert answer.body == b'{"data":[%b],"hasMore":true}' % b",".join(stored)
    first = (await call(port, "GET", f"{ONE}/history")).json()
    seqs = [event["durable"]["seq"] for event in first["data"]]
    assert (seqs, first["hasMore"]) == (list(range(1, 51)), True)
    last = (await call(port, "GET", f"{ONE}/history?after=59")).json()
    assert ([event["durable"]["seq"] for event in last["data"]], last["hasMore"]) == ([60], False)


@requirement("S137")
async def test_messages_can_be_walked_to_the_end_and_back(port: int, backend: Backend) -> None:
    await backend.add_messages(SESSION, 5)
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
    wider = await call(port, "GET", f"{path}?limit=3&cursor={first['cursor']['next']}")
    assert (wider.status, wider.json()["_tag"]) == (400, "InvalidCursorError")


@requirement("S137")
async def test_a_message_cursor_is_for_its_own_session_and_order(
    port: int, backend: Backend
) -> None:
    await backend.add_messages(SESSION, 5)
    page = (await call(port, "GET", f"{ONE}/message?limit=2")).json()
    cursor = page["cursor"]["next"]
    both = await call(port, "GET", f"{ONE}/message?order=asc&cursor={cursor}")
    assert (both.status, both.json()["message"]) == (400, "Cursor cannot be combined with order")
    foreign = await call(port, "GET", f"{TWO}/message?cursor={cursor}")
    assert (foreign.status, foreign.json()["_tag"]) == (400, "InvalidCursorError")
    assert (await call(port, "GET", f"{ONE}/message?cursor=")).status == 200


async def test_an_empty_page_has_no_cursors(port: int) -> None:
    answer = await call(port, "GET", f"{TWO}/message")
    assert answer.body == b'{"data":[],"cursor":{}}'


@requirement("S136")
async def test_a_session_cursor_is_the_whole_query(port: int, backend: Backend) -> None:
    here = f"directory={backend.here}"
    page = (await call(port, "GET", f"/api/session?limit=1&{here}&order=asc")).json()
    assert [each["id"] for each in page["data"]] == [SESSION]
    assert list(page["cursor"]) == ["next"]
    cursor = f"cursor={page['cursor']['next']}"
    # A client made for a directory adds it to every request by itself.
    following = (await call(port, "GET", f"/api/session?{cursor}&{here}")).json()
    assert [each["id"] for each in following["data"]] == [OTHER]
    assert list(following["cursor"]) == ["previous"]
    for other in ("order=asc", "search=x", "project=p", "subpath=s", "directory=/other"):
        refused = await call(port, "GET", f"/api/session?{cursor}&{other}")
        assert (refused.status, refused.json()["_tag"]) == (400, "InvalidCursorError"), other
    assert (await call(port, "GET", "/api/session?cursor=")).status == 400


async def test_a_session_page_is_capped(port: int, backend: Backend) -> None:
    sessions = backend.runtime.sessions
    await asyncio.gather(*(sessions.create(id=SessionID(f"ses_{n}")) for n in range(200)))
    page = (await call(port, "GET", "/api/session?limit=100000")).json()
    assert (len(page["data"]), list(page["cursor"])) == (200, ["next"])


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
async def test_a_bad_body_is_the_callers_fault(port: int, body: bytes, said: str) -> None:
    answer = await call(port, "POST", f"{ONE}/prompt", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert answer.json()["message"].startswith(said)
    assert await pending(port) == []


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


async def test_a_body_that_does_not_say_what_it_is_is_refused(port: int) -> None:
    before = (await call(port, "GET", "/api/session")).json()
    async with connected(port) as client:
        await client.say(
            b"POST /api/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
        )
        assert (await client.answer()).status == 415
    assert (await call(port, "GET", "/api/session")).json() == before


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
        ("GET", "/nothing", 404, None),
        ("POST", "/", 405, "GET, HEAD"),
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


async def test_large_json_is_compressed_for_those_who_can_read_it(
    port: int, backend: Backend
) -> None:
    await backend.add_messages(SESSION, 150)
    plain = await call(port, "GET", f"{ONE}/context")
    packed = await call(port, "GET", f"{ONE}/context", None, {"accept-encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    for encoding in ("identity", "gzip;q=0", "gzip; q=0.0, br"):
        answer = await call(port, "GET", f"{ONE}/context", None, {"accept-encoding": encoding})
        assert "content-encoding" not in answer.headers
    small = await call(port, "GET", "/api/health", None, {"accept-encoding": "gzip"})
    assert "content-encoding" not in small.headers


async def test_a_very_large_answer_is_compressed_too(port: int, backend: Backend) -> None:
    await backend.add_messages(SESSION, 1_000)
    body = codec.encode({"prompt": {"text": "x" * 90_000}, "resume": False})
    for _ in range(5):
        assert (await call(port, "POST", f"{ONE}/prompt", body)).status == 200
    for path, count in ((f"{ONE}/context", 1_000), (f"{ONE}/inbox", 5)):
        packed = await call(port, "GET", path, None, {"accept-encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        assert len(codec.decode_any(gzip.decompress(packed.body))["data"]) == count


async def test_a_defect_gives_a_reference_and_no_secret(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Call[object, object]) -> object:
        raise RuntimeError("the secret is hunter2")

    async with backend.port(handlers=with_handler("v2.session.get", broken)) as port:
        answer = await call(port, "GET", ONE)
        assert (await call(port, "GET", "/api/health")).status == 200
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
        ("", {}, "project", None),
        ("location%5Bdirectory%5D={root}/q&location[directory]={root}/r", {}, "q", None),
        ("location[directory]={root}/q", {"x-opencode-directory": "{root}/h"}, "q", None),
        ("location[directory]=", {"x-opencode-directory": "{root}%2Fh%20x"}, "h x", None),
        ("", {"x-opencode-directory": "{root}/100%"}, "100%", None),
        ("", {"x-opencode-directory": "{root}/%ff"}, "%ff", None),
        ("directory={root}/flat", {}, "project", None),
        ("location[workspace]=wrk_1", {}, "project", "wrk_1"),
        ("", {"x-opencode-workspace": "wrk_2"}, "project", "wrk_2"),
    ],
)
async def test_a_location_comes_from_the_query_then_the_headers_then_the_server(
    port: int,
    tmp_path: Path,
    query: str,
    headers: dict[str, str],
    directory: str,
    workspace: str | None,
) -> None:
    for name in ("q", "r", "h", "h x", "100%", "%ff", "flat"):
        (tmp_path / name).mkdir()
    path = f"/api/location?{query}".replace("{root}", str(tmp_path))
    given = {name: value.replace("{root}", str(tmp_path)) for name, value in headers.items()}
    body = (await call(port, "GET", path, None, given)).json()
    assert (body["directory"], body.get("workspaceID")) == (f"{tmp_path}/{directory}", workspace)


async def test_session_routes_do_not_care_what_location_a_request_names(port: int) -> None:
    headers = {"x-opencode-directory": "relative"}
    assert (await call(port, "GET", f"{ONE}?location=x", None, headers)).status == 200


async def test_what_a_client_supplies_as_an_id_is_kept(port: int) -> None:
    answer = await call(port, "POST", "/api/session", b'{"id":"ses_mine"}')
    assert answer.json()["data"]["id"] == SessionID("ses_mine")
