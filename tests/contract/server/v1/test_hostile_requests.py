"""V1 routes and input that no client of good will sends: clear refusals, and nothing changed."""

from pathlib import Path

import pytest
from msgspec import structs

from perdure.protocol.v1 import refused
from perdure.protocol.v1.api import V1_API
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend, open_backend
from tests.contract.server.test_security_matrix import path_of
from tests.support.raw_http import call

BODIES = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a number": b"1e999",
    "deep": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "half a character": b'{"text":"\\ud800","command":"\\ud800","patch":"\\ud800"}',
    "a null character": b'{"command":"a\\u0000b","arguments":"\\u0000","path":"\\u0000"}',
    "numbers for texts": b'{"text":1,"command":2,"arguments":3,"message":4,"type":5,"parts":6}',
}


@pytest.mark.parametrize("given", BODIES)
async def test_no_route_fails_or_hangs_on_a_malformed_body(
    given: str, backend: Backend, port: int
) -> None:
    before = await backend.count_events(SESSION)
    changing = {"v1.pty.create", "v1.session.fork", "v1.session.summarize", "v1.session.init"}
    for endpoint in V1_API:
        if endpoint.body is None or endpoint.operation_id in changing:
            continue
        answer = await call(port, endpoint.method, path_of(endpoint), BODIES[given])
        # Where nothing is required, fields that the route does not have are ignored.
        fields = (field.required for field in structs.fields(endpoint.body))
        # Requests to the terminal client are only passed on.
        takes_any = endpoint.body_optional or endpoint.operation_id.startswith("v1.tui.")
        least = 400 if any(fields) and not takes_any else 200
        assert least <= answer.status < 500, (endpoint.operation_id, answer.body[:200])
    assert await backend.count_events(SESSION) == before


async def test_a_body_that_is_too_large_is_refused_by_every_route(
    backend: Backend, port: int
) -> None:
    huge = codec.encode({"text": "x" * 200_000})
    for endpoint in V1_API:
        if endpoint.body is not None:
            answer = await call(port, endpoint.method, path_of(endpoint), huge)
            assert answer.status == 413, endpoint.operation_id


@pytest.mark.parametrize("endpoint", refused.ENDPOINTS, ids=lambda it: it.operation_id)
async def test_what_is_not_offered_says_why(endpoint: object, port: int) -> None:
    each = next(it for it in refused.ENDPOINTS if it is endpoint)
    body = b"{}" if each.method != "GET" else None
    answer = await call(port, each.method, path_of(each), body)
    assert (answer.status, answer.json()["name"]) == (400, "BadRequest")
    assert answer.json()["data"]["message"] == refused.WHY[each.operation_id]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/find", 400),
        ("/find?pattern=", 400),
        ("/find?pattern=(", 400),
        ("/find?pattern=" + "x" * 20_000, 400),
        ("/find/file?query=x&limit=0", 400),
        ("/find/file?query=x&type=socket", 400),
        ("/file?path=../", 400),
        ("/file?path=/etc", 400),
        ("/file/content?path=../outside.txt", 400),
        ("/file/content?path=/etc/passwd", 400),
        ("/file/content?path=link.txt", 400),
        ("/file/content?path=missing.txt", 404),
        ("/file/content?path=%00", 400),
        ("/file/content", 400),
        ("/vcs/diff", 400),
        ("/vcs/diff?mode=other", 400),
        ("/project/none/directories", 404),
        ("/pty/none", 400),
        ("/pty/pty_none", 404),
        ("/pty/pty_none/connect", 404),
        ("/path?directory=relative", 400),
        ("/path?directory=/no/such/directory", 400),
        ("/session/ses_none/diff", 404),
        (f"/session/{SESSION}/diff?messageID=msg_none", 404),
        (f"/session/{SESSION}/diff?messageID=none", 400),
        ("/experimental/session?limit=0", 400),
    ],
)
async def test_a_query_that_cannot_be_answered_is_refused(
    path: str, status: int, backend: Backend, port: int
) -> None:
    outside = backend.folders.project.parent / "outside.txt"
    outside.write_text("secret")
    (backend.folders.project / "link.txt").symlink_to(outside)
    answer = await call(port, "GET", path)
    assert answer.status == status, answer.body
    assert b"secret" not in answer.body


async def test_content_that_a_rule_denies_is_not_shown(tmp_path: Path) -> None:
    rules = [{"action": "read", "resource": "*.env", "effect": "deny"}]
    async with open_backend(tmp_path, permissions=rules) as backend, backend.port() as port:
        (backend.folders.project / "a.env").write_text("KEY=words\n")
        (backend.folders.project / "b.txt").write_text("words\n")
        denied = await call(port, "GET", "/file/content?path=a.env")
        assert (denied.status, denied.json()["name"]) == (403, "UnknownError")
        found = (await call(port, "GET", "/find?pattern=words")).json()
        assert [each["path"]["text"] for each in found] == ["b.txt"]
        shown = (await call(port, "GET", "/file/content?path=b.txt")).json()
        assert shown == {"type": "text", "content": "words\n"}


async def test_a_file_that_is_no_text_is_sent_as_base64(backend: Backend, port: int) -> None:
    (backend.folders.project / "a.png").write_bytes(b"\x89PNG\0\xff")
    shown = (await call(port, "GET", "/file/content?path=a.png")).json()
    assert shown == {
        "type": "binary",
        "content": "iVBORwD/",
        "encoding": "base64",
        "mimeType": "image/png",
    }


async def test_ignored_files_are_marked(backend: Backend, port: int) -> None:
    project = backend.folders.project
    (project / ".gitignore").write_text("*.log\nbuilt/\n")
    (project / "sub").mkdir()
    (project / "sub" / ".gitignore").write_text("!kept.log\n")
    for name in ("a.log", "sub/kept.log", "sub/b.log"):
        (project / name).write_text("x")
    (project / "built").mkdir()
    listed = (await call(port, "GET", f"/file?path={project}")).json()
    marked = {each["name"] for each in listed if each["ignored"]}
    assert marked == {"a.log", "built"}
    below = (await call(port, "GET", "/file?path=sub")).json()
    assert {each["name"]: each["ignored"] for each in below} == {
        ".gitignore": False,
        "b.log": True,
        "kept.log": False,
    }
    assert below[0]["absolute"].startswith(f"{project}/sub/")


async def test_a_key_is_stored_and_removed_and_never_shown(backend: Backend, port: int) -> None:
    key = codec.encode({"type": "api", "key": "sk-very-secret-key"})
    assert (await call(port, "PUT", "/auth/anthropic", key)).json() is True
    for path in ("/provider", "/config", "/config/providers", "/provider/auth"):
        assert b"very-secret" not in (await call(port, "GET", path)).body
    before = (await call(port, "GET", "/api/integration/anthropic")).json()["data"]
    assert [each["type"] for each in before["connections"]] == ["credential"]
    assert (await call(port, "DELETE", "/auth/anthropic")).json() is True
    after = (await call(port, "GET", "/api/integration/anthropic")).json()["data"]
    assert after["connections"] == []
    oauth = codec.encode({"type": "oauth", "refresh": "x", "access": "y", "expires": 1})
    assert (await call(port, "PUT", "/auth/anthropic", oauth)).status == 400
    assert (await call(port, "PUT", "/auth/none", key)).status == 404


async def test_a_terminal_is_made_renamed_and_removed(port: int) -> None:
    made: JsonObject = (await call(port, "POST", "/pty", b'{"command":"cat","title":"one"}')).json()
    path = f"/pty/{made['id']}"
    assert (await call(port, "PUT", path, b'{"title":"two"}')).json()["title"] == "two"
    assert [each["id"] for each in (await call(port, "GET", "/pty")).json()] == [made["id"]]
    ticket = (await call(port, "POST", f"{path}/connect-token")).json()
    assert ticket["expires_in"] > 0
    assert (await call(port, "DELETE", path)).json() is True
    assert (await call(port, "GET", path)).status == 404
    assert any(each["acceptable"] for each in (await call(port, "GET", "/pty/shells")).json())


async def test_a_line_for_the_log_is_written_on_one_line(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"service": "tui\nfake", "level": "error", "message": "a\nERROR b", "extra": {"n": 1}}
    with caplog.at_level("DEBUG", "perdure.client"):
        assert (await call(port, "POST", "/log", codec.encode(body))).json() is True
    (record,) = [each for each in caplog.records if each.name == "perdure.client"]
    assert (record.levelname, record.getMessage()) == ("ERROR", 'tui fake: a ERROR b {"n":1}')
    long = codec.encode({"service": "s", "level": "info", "message": "x" * 20_000})
    assert (await call(port, "POST", "/log", long)).status == 400
