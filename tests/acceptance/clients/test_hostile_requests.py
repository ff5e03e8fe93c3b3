"""Requests that are wrong in every way we could think of: each is refused, and nothing changes.

A row says what is sent and which status and `_tag` come back. Around each, every row of every
table is compared.
"""

import asyncio
import base64
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import pytest

from perdure.core import limits
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.shared_server import SharedServer, shared_server

INVALID, CURSOR = (400, "InvalidRequestError"), (400, "InvalidCursorError")
NO_PATH, NO_SESSION = (404, "NotFoundError"), (404, "SessionNotFoundError")
METHOD, FORBIDDEN = (405, "MethodNotAllowedError"), (403, "ForbiddenError")
MEDIA = (415, "UnsupportedMediaTypeError")

CREATE, KNOWN = "/api/session", "/api/session/ses_known"
PROMPT = f"{KNOWN}/prompt"


@dataclass(frozen=True, slots=True)
class Sent:
    expected: tuple[int, str]
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def created(body: bytes, expected: tuple[int, str] = INVALID) -> Sent:
    return Sent(expected, "POST", CREATE, body)


def said(body: bytes, expected: tuple[int, str] = INVALID) -> Sent:
    return Sent(expected, "POST", PROMPT, body)


def asked(path: str, expected: tuple[int, str] = INVALID, **headers: str) -> Sent:
    return Sent(expected, "GET", path, None, headers)


def typed(media: str, **more: str) -> Sent:
    headers = {"content-type": media} | {k.replace("_", "-"): v for k, v in more.items()}
    return Sent(MEDIA, "POST", CREATE, b"{}", headers)


BODIES: Mapping[str, Sent] = {
    "malformed": created(b"{bad"),
    "cut off": created(b'{"id":"ses_a"'),
    "two values": created(b"{} {}"),
    "null": created(b"null"),
    "list": created(b"[]"),
    "text": created(b'"ses_a"'),
    "number": created(b"7"),
    "only blanks": created(b"   "),
    "not a number": created(b'{"id":NaN}'),
    "infinity": created(b'{"x":Infinity}'),
    "lone surrogate": created(b'{"agent":"\\ud800"}'),
    "half a surrogate pair": created(b'{"agent":"\\ud83d\\u0041"}'),
    "no utf-8": created(b'{"agent":"\xff\xfe"}'),
    "overlong utf-8": created(b'{"agent":"\xc0\xaf"}'),
    "utf-16": created('{"agent":"x"}'.encode("utf-16")),
    "raw control character": created(b'{"agent":"a\x00b"}'),
    "deep list": created(b"[" * 200_000),
    "deep unknown field": created(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "id of another kind": created(b'{"id":"msg_a"}'),
    "id without body": created(b'{"id":"ses_"}'),
    "id without mark": created(b'{"id":"sesX"}'),
    "id with a path": created(b'{"id":"ses_../../etc/passwd"}'),
    "id with a quote": created(b'{"id":"ses_\'; DROP TABLE event; --"}'),
    "id with a line break": created(b'{"id":"ses_a\\n"}'),
    "id beyond ascii": created('{"id":"ses_ä"}'.encode()),
    "id far too long": created(b'{"id":"ses_' + b"a" * 5_000 + b'"}'),
    "id as number": created(b'{"id":7}'),
    "id twice": created(b'{"id":"ses_a","id":"bad"}'),
    "agent as number": created(b'{"agent":7}'),
    "model as text": created(b'{"model":"fake/fake-model"}'),
    "model without id": created(b'{"model":{"providerID":"fake"}}'),
    "variant null": created(b'{"model":{"providerID":"f","id":"m","variant":null}}'),
    "location as text": created(b'{"location":"/tmp"}'),
    "directory null": created(b'{"location":{"directory":null}}'),
    "directory relative": created(b'{"location":{"directory":"src"}}'),
    "directory missing": created(b'{"location":{"directory":"/no/such/place"}}'),
    "directory a file": created(b'{"location":{"directory":"/etc/hostname"}}'),
    "directory with nul": created(b'{"location":{"directory":"/tmp\\u0000/x"}}'),
    "directory too long": created(b'{"location":{"directory":"/' + b"a" * 9_000 + b'"}}'),
    "workspace of another kind": created(
        b'{"location":{"directory":"/tmp","workspaceID":"ses_a"}}'
    ),
    "prompt: nothing": said(b"{}"),
    "prompt: as text": said(b'{"prompt":"hi"}'),
    "prompt: without text": said(b'{"prompt":{}}'),
    "prompt: text number": said(b'{"prompt":{"text":3}}'),
    "prompt: text null": said(b'{"prompt":{"text":null}}'),
    "prompt: lone surrogate": said(b'{"prompt":{"text":"\\udfff"}}'),
    "prompt: files null": said(b'{"prompt":{"text":"x","files":null}}'),
    "prompt: files object": said(b'{"prompt":{"text":"x","files":{}}}'),
    "prompt: file without uri": said(b'{"prompt":{"text":"x","files":[{}]}}'),
    "prompt: file name null": said(b'{"prompt":{"text":"x","files":[{"uri":"u","name":null}]}}'),
    "prompt: agents null": said(b'{"prompt":{"text":"x","agents":null}}'),
    "prompt: delivery unknown": said(b'{"prompt":{"text":"x"},"delivery":"later"}'),
    "prompt: resume as text": said(b'{"prompt":{"text":"x"},"resume":"yes"}'),
    "prompt: id of another kind": said(b'{"prompt":{"text":"x"},"id":"ses_a"}'),
    "prompt: id with a path": said(b'{"prompt":{"text":"x"},"id":"msg_../x"}'),
    "prompt: id too long": said(b'{"prompt":{"text":"x"},"id":"msg_' + b"a" * 200 + b'"}'),
    "prompt: id in use": said(
        b'{"prompt":{"text":"other"},"id":"msg_known"}', (409, "ConflictError")
    ),
    "prompt: unknown session first": Sent(NO_SESSION, "POST", "/api/session/ses_x/prompt", b"{"),
    "prompt: bad session first": Sent(INVALID, "POST", "/api/session/x/prompt", b"{"),
    "agent: nothing": Sent(INVALID, "POST", f"{KNOWN}/agent", b"{}"),
    "agent: null": Sent(INVALID, "POST", f"{KNOWN}/agent", b'{"agent":null}'),
    "model: null": Sent(INVALID, "POST", f"{KNOWN}/model", b'{"model":null}'),
    "model: id number": Sent(
        INVALID, "POST", f"{KNOWN}/model", b'{"model":{"providerID":"f","id":1}}'
    ),
    "no body": Sent(INVALID, "POST", PROMPT),
    "no content type": typed(""),
    "plain text": typed("text/plain"),
    "form": typed("application/x-www-form-urlencoded"),
    "almost json": typed("application/jsonp"),
    "two types": typed("text/plain, application/json"),
    "compressed": typed("application/json", content_encoding="gzip"),
}

QUERIES: Mapping[str, Sent] = {
    f"{path.removeprefix(KNOWN)}?{query}": asked(f"{path}?{query}", expected)
    for path, query, expected in [
        (f"{KNOWN}/message", "limit=0", INVALID),
        (f"{KNOWN}/message", "limit=-1", INVALID),
        (f"{KNOWN}/message", "limit=1.5", INVALID),
        (f"{KNOWN}/message", "limit=NaN", INVALID),
        (f"{KNOWN}/message", "limit=1e30", INVALID),
        (f"{KNOWN}/message", "limit=201", INVALID),
        (f"{KNOWN}/message", "limit=" + "9" * 5_000, INVALID),
        (f"{KNOWN}/message", "limit=2&limit=3", INVALID),
        (f"{KNOWN}/message", "limit=%D9%A3", INVALID),
        (f"{KNOWN}/message", "order=up", INVALID),
        (f"{KNOWN}/message", "cursor=junk", CURSOR),
        (f"{KNOWN}/message", "cursor=%00", CURSOR),
        (f"{KNOWN}/message", "cursor=eyJpZCI6Im1zZ19rbm93biJ9", CURSOR),
        (f"{KNOWN}/history", "limit=101", INVALID),
        (f"{KNOWN}/history", "after=-1", INVALID),
        (f"{KNOWN}/history", "after=x", INVALID),
        (f"{KNOWN}/history", "after=9007199254740993", INVALID),
        (f"{KNOWN}/event", "after=-1", INVALID),
        (f"{KNOWN}/event", "after=1&after=2", INVALID),
        (CREATE, "limit=0", INVALID),
        (CREATE, "order=sideways", INVALID),
        (CREATE, "workspace=ses_a", INVALID),
        (CREATE, "cursor=", CURSOR),
        (CREATE, "cursor=AAAA", CURSOR),
        ("/api/location", "location[directory]=/no/such/place", INVALID),
        ("/api/location", "location[directory]=relative", INVALID),
        ("/api/agent", "location[workspace]=bad", INVALID),
        ("/api/model", "location={%22directory%22:%22/tmp%22}", INVALID),
    ]
}

PATHS: Mapping[str, Sent] = {
    "unknown": asked("/api/nope", NO_PATH),
    "outside the API": asked("/nope", NO_PATH),
    "too deep": asked(f"{KNOWN}/message/msg_known/more", NO_PATH),
    "dots": asked("/api/session/../../etc/passwd", NO_PATH),
    "encoded dots": asked("/api/session/%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
    "nul": asked("/api/session/ses_%00"),
    "no utf-8": asked("/api/session/ses_%ff"),
    "bad escape": asked("/api/session/ses_%zz"),
    "bad session id": asked("/api/session/nope"),
    "long session id": asked("/api/session/ses_" + "a" * 3_000),
    "unknown session": asked("/api/session/ses_unknown", NO_SESSION),
    "unknown message": asked(f"{KNOWN}/message/msg_x", (404, "MessageNotFoundError")),
    "bad message id": asked(f"{KNOWN}/message/nope"),
    "unknown provider": asked("/api/provider/nope", (404, "ProviderNotFoundError")),
    "put": Sent(METHOD, "PUT", KNOWN),
    "delete: of the prompt": Sent(METHOD, "DELETE", PROMPT),
    "rename: nothing": Sent(INVALID, "PATCH", KNOWN, b"{}"),
    "rename: null": Sent(INVALID, "PATCH", KNOWN, b'{"title":null}'),
    "rename: only blanks": Sent(INVALID, "PATCH", KNOWN, b'{"title":" \\n "}'),
    "fork: from the future": Sent(INVALID, "POST", f"{KNOWN}/fork", b'{"seq":99999}'),
    "fork: before the beginning": Sent(INVALID, "POST", f"{KNOWN}/fork", b'{"seq":-1}'),
    "fork: id of another kind": Sent(INVALID, "POST", f"{KNOWN}/fork", b'{"id":"msg_a"}'),
    "inbox: order of nobody": Sent(
        (404, "MessageNotFoundError"),
        "POST",
        f"{KNOWN}/inbox/order",
        b'{"messageIDs":["msg_nobody"]}',
    ),
    "inbox: order as text": Sent(INVALID, "POST", f"{KNOWN}/inbox/order", b'{"messageIDs":"m"}'),
    "inbox: id of another kind": Sent(INVALID, "DELETE", f"{KNOWN}/inbox/ses_a"),
    "inbox: promoted already": Sent((409, "ConflictError"), "DELETE", f"{KNOWN}/inbox/msg_known"),
    "put: a session": Sent(METHOD, "PUT", KNOWN, b"{}"),
    "patch": Sent(METHOD, "PATCH", PROMPT, b"{}"),
    "get of a verb": asked(f"{KNOWN}/interrupt", METHOD),
    "invented method": Sent(INVALID, "BREW", KNOWN),
    "head too large": asked(
        "/api/health?" + "a" * limits.REQUEST_HEAD_BYTES_MAX, (431, "RequestHeadTooLargeError")
    ),
}

CALLERS: Mapping[str, Sent] = {
    "foreign host": asked("/api/health", FORBIDDEN, host="evil.example"),
    "host that begins like ours": asked("/api/health", FORBIDDEN, host="127.0.0.1.evil.example"),
    "host with junk": asked("/api/health", FORBIDDEN, host="localhost:x"),
    "foreign origin": Sent(FORBIDDEN, "POST", CREATE, b"{}", {"origin": "https://evil.example"}),
    "foreign origin reads": asked("/api/session", FORBIDDEN, origin="https://evil.example"),
    "null origin": Sent(FORBIDDEN, "POST", CREATE, b"{}", {"origin": "null"}),
    "origin of another port": Sent(
        FORBIDDEN, "POST", CREATE, b"{}", {"origin": "http://localhost:1"}
    ),
    "foreign preflight": Sent(
        FORBIDDEN,
        "OPTIONS",
        CREATE,
        None,
        {"origin": "https://evil.example", "access-control-request-method": "POST"},
    ),
}

ROWS = {**BODIES, **QUERIES, **PATHS, **CALLERS}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedServer]:
    """A server with one conversation and one pending prompt: something to lose.

    One for all: whatever is sent here changes nothing, which each test sees for itself.
    """
    with shared_server(tmp_path_factory.mktemp("stage"), _something_to_lose) as server:
        yield server


async def _something_to_lose(api: Api) -> None:
    await api.create(id="ses_known")
    await api.ask("ses_known", "hello", id="msg_known")
    await api.prompt("ses_known", "later", id="msg_later", resume=False)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedServer]:
    """A server with a password."""
    with shared_server(tmp_path_factory.mktemp("guarded"), password="secret") as server:
        yield server


@requirement("S117")
@pytest.mark.parametrize("name", ROWS)
async def test_a_bad_request_is_refused_and_changes_nothing(stage: SharedServer, name: str) -> None:
    sent = ROWS[name]
    before = database_check.dump(stage.folders.database)
    message = stage.api.message(sent.method, sent.path, sent.body, sent.headers)
    answer = await stage.api.raw(message)
    assert (answer.status, answer.tag) == sent.expected, answer.body[:300]
    assert len(answer.body) < 5_000
    assert database_check.dump(stage.folders.database) == before
    assert (await stage.api.get("/api/health"))["healthy"] is True


MALFORMED: Mapping[str, bytes] = {
    "no http": b"hello\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200 + b"\r\n\r\n",
    "no host": b"GET /api/health HTTP/1.1\r\nconnection: close\r\n\r\n",
    "two hosts": b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nhost: evil\r\n"
    b"connection: close\r\n\r\n",
    "length is no number": b"POST /api/session HTTP/1.1\r\nhost: localhost\r\n"
    b"content-length: x\r\n\r\n{}",
    "length is negative": b"POST /api/session HTTP/1.1\r\nhost: localhost\r\n"
    b"content-length: -2\r\n\r\n{}",
    "two lengths": b"POST /api/session HTTP/1.1\r\nhost: localhost\r\n"
    b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "length and chunks": b"POST /api/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n"
    b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "bad chunk": b"POST /api/session HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "space before the colon": b"GET /api/health HTTP/1.1\r\nhost : localhost\r\n\r\n",
    "line break in a header": b"GET /api/health HTTP/1.1\r\nhost: local\nhost\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_what_is_no_request_is_refused_and_changes_nothing(
    stage: SharedServer, name: str
) -> None:
    before = database_check.dump(stage.folders.database)
    answer = await stage.api.raw(MALFORMED[name])
    assert answer.status in {400, 403}
    assert database_check.dump(stage.folders.database) == before
    assert (await stage.api.get("/api/health"))["healthy"] is True


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
async def test_a_body_over_the_limit_is_refused(
    folders: ProjectFolders, *, announced: bool
) -> None:
    async with running(folders, body_bytes_max=1_000) as instance:
        api = instance.api
        body = b'{"agent":"' + b"x" * 2_000 + b'"}'
        if announced:
            message = api.message("POST", CREATE, body)
        else:
            chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            headers = {"content-length": "", "transfer-encoding": "chunked"}
            message = api.message("POST", CREATE, b"", headers) + chunks
        answer = await api.raw(message)
        assert (answer.status, answer.tag) == (413, "PayloadTooLargeError")
        assert answer.json["limit"] == 1_000
        assert (await api.get(CREATE))["data"] == []


async def test_the_limit_of_a_body_holds_as_delivered(api: Api) -> None:
    message = api.message(
        "POST", CREATE, b"", {"content-length": str(limits.REQUEST_BODY_BYTES_MAX + 1)}
    )
    answer = await api.raw(message + b" " * 100_000)
    assert (answer.status, answer.tag) == (413, "PayloadTooLargeError")


async def test_a_client_that_hangs_up_in_the_middle_of_a_body_leaves_nothing(
    stage: SharedServer,
) -> None:
    before = database_check.dump(stage.folders.database)
    whole = stage.api.message("POST", PROMPT, b'{"prompt":{"text":"half"}}')
    for length in range(10, len(whole), 13):
        await _send_and_leave(stage.api, whole[:length])
    assert (await stage.api.get("/api/health"))["healthy"] is True
    assert database_check.dump(stage.folders.database) == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Basic"},
        {"authorization": "Basic !!!"},
        {"authorization": "Basic " + base64.b64encode(b"opencode:wrong").decode()},
        {"authorization": "Basic " + base64.b64encode(b"other:secret").decode()},
        {"authorization": "Bearer secret"},
        {"authorization": "secret"},
    ],
    ids=["none", "empty", "no-base64", "wrong-password", "wrong-user", "bearer", "bare"],
)
async def test_without_the_password_nothing_is_told(
    guarded: SharedServer, headers: dict[str, str]
) -> None:
    for method, path in (
        ("GET", "/api/health/detail"),
        ("GET", "/api/session"),
        ("POST", CREATE),
        ("GET", "/api/event"),
        ("GET", "/api/session/ses_x"),
        ("GET", "/nope"),
    ):
        answer = await guarded.api.raw(guarded.api.message(method, path, headers=headers))
        assert (answer.status, answer.tag) == (401, "UnauthorizedError"), path
        assert answer.headers["www-authenticate"].startswith("Basic")
    right = {"authorization": "Basic " + base64.b64encode(b"opencode:secret").decode()}
    known = await guarded.api.call("GET", "/api/session", headers=right)
    assert known.json["data"] == []


async def test_a_token_in_the_address_is_for_streams_only(guarded: SharedServer) -> None:
    token = base64.b64encode(b"opencode:secret").decode()
    async with guarded.api.stream(f"/api/event?auth_token={token}") as stream:
        assert (await stream.event())["type"] == "server.connected"
    answer = await guarded.api.call("GET", f"/api/session?auth_token={token}")
    assert answer.status == 401


async def _send_and_leave(api: Api, data: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(data)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
