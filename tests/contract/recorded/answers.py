"""Requests of which only the answers were recorded, and how ours differ from those.

The names are those of the recordings. What was sent is told by them and by what came back.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from perdure.schema.codec import JsonObject
from tests.contract.recorded.replay import Replay
from tests.support.api import Answer, Api

USERNAME: Final = "bob"
PASSWORD: Final = "pw"
ORIGINS: Final = frozenset(
    {
        *("http://localhost:3000", "http://127.0.0.1:9999", "tauri://localhost"),
        *("https://app.opencode.ai", "https://ok.example"),
    }
)
"""All that the recorded server allowed. Most of them by itself; here each has to be listed."""
EVENT_STREAM: Final = "text/event-stream"
_TELLING: Final = ("access-control-", "www-authenticate", "content-encoding")
"""A header that begins with one of these means something by being there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    path: str = "/api/health"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    guarded: bool = False
    """To the server that asks for a password."""


def _token(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def _authorized(user: str, password: str) -> Sent:
    return Sent(headers={"authorization": f"Basic {_token(user, password)}"}, guarded=True)


def _preflight(origin: str, headers: str, *, guarded: bool = False) -> Sent:
    asked = {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }
    return Sent(method="OPTIONS", path="/api/session", headers=asked, guarded=guarded)


def _posted(body: bytes, path: str = "/api/session", **headers: str) -> Sent:
    """A header given as the empty text is left out."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Sent(method="POST", path=path, body=body, headers=named)


_EVIL: Final = "https://evil.com"
_ASKING: Final = (
    *("http://localhost:3000", "http://127.0.0.1:9999", _EVIL, "https://app.opencode.ai"),
    *("https://evil-opencode.ai", "tauri://localhost", "http://localhost.evil.com:80"),
    *("null", "http://localhost"),
)
_TERMINAL: Final = b'{"command":"/bin/sh","args":["-c","true"]}'

AUTH_CORS: Final[Mapping[str, Sent]] = {
    "auth []": Sent(guarded=True),
    "auth [-u bob:pw]": _authorized(USERNAME, PASSWORD),
    "auth [-u opencode:pw]": _authorized("opencode", PASSWORD),
    "auth [-u bob:bad]": _authorized(USERNAME, "bad"),
    "auth_token": Sent(path=f"/api/health?auth_token={_token(USERNAME, PASSWORD)}", guarded=True),
    "bearer": Sent(headers={"authorization": f"Bearer {PASSWORD}"}, guarded=True),
    "doc no auth": Sent(path="/doc", guarded=True),
    "unknown path no auth": Sent(path="/nope", guarded=True),
    "root no auth": Sent(path="/", guarded=True),
    "preflight no auth": _preflight(
        "http://localhost:3000", "content-type,x-opencode-directory", guarded=True
    ),
    "pty connect bogus ticket no auth": Sent(
        path="/api/pty/pty_nope/connect?ticket=bogus", guarded=True
    ),
    "event no auth": Sent(path="/api/event", guarded=True),
    **{f"GET origin {origin}": Sent(headers={"origin": origin}) for origin in _ASKING},
    "preflight ok": _preflight("http://localhost:3000", "content-type,x-foo"),
    "preflight evil": _preflight(_EVIL, "content-type"),
    "custom cors ok.example (auth)": Sent(
        headers={
            "origin": "https://ok.example",
            "authorization": f"Basic {_token(USERNAME, PASSWORD)}",
        },
        guarded=True,
    ),
    "CSRF: evil origin, no content-type POST": _posted(b"{}", origin=_EVIL, content_type=""),
    "CSRF pty evil origin, no content-type POST": _posted(
        _TERMINAL, "/api/pty", origin=_EVIL, content_type=""
    ),
    "Host rebinding": Sent(headers={"host": "evil.com"}),
    "urlencoded ct": _posted(b"a=b", content_type="application/x-www-form-urlencoded"),
    "multipart": _posted(b"--x--", content_type="multipart/form-data; boundary=x"),
    "ct json charset": _posted(b"{}", content_type="application/json; charset=utf-8"),
    "gzip": Sent(path="/api/agent", headers={"accept-encoding": "gzip"}),
}

_SESSION: Final = "/api/session/{gone}"
MISC_HTTP: Final[Mapping[str, Sequence[Sent]]] = {
    "session whose directory does not exist": [
        Sent(path=_SESSION),
        Sent(path=f"{_SESSION}/message"),
        Sent(path=f"{_SESSION}/history"),
        Sent(path=f"{_SESSION}/context"),
    ],
    "interrupt/prompt there": [
        _posted(b"{}", f"{_SESSION}/interrupt"),
        _posted(b'{"prompt":{"text":"hello"}}', f"{_SESSION}/prompt"),
    ],
    "/openapi.json": [Sent(path="/openapi.json")],
    "SSE gzip?": [Sent(path="/api/event", headers={"accept-encoding": "gzip"})],
    "trailing slash": [Sent(path="/api/session/")],
    "session id with slash-encoded": [Sent(path="/api/session/ses%2F..%2Fx")],
    "HEAD /api/health": [Sent(method="HEAD")],
    "POST /api/health": [_posted(b"{}", "/api/health")],
    "huge after": [
        Sent(path=f"{_SESSION}/history?after={after}")
        for after in ("9007199254740992", "1e30", "Infinity")
    ],
}
"""`{gone}` stands for a Session whose directory was removed."""


async def answer(api: Api, sent: Sent, recorded: JsonObject) -> Answer:
    """Of a stream that was one in the recording, only the head."""
    if recorded.get("headers", {}).get("content-type") == EVENT_STREAM:
        async with api.stream(sent.path, sent.headers) as stream:
            return Answer(200, stream.headers, b"")
    return await api.raw(api.message(sent.method, sent.path, sent.body, sent.headers))


def differences(recorded: JsonObject, ours: Answer) -> list[str]:
    if "status" in recorded and ours.status != recorded["status"]:
        return [f"status {ours.status} instead of {recorded['status']}"]
    head = recorded.get("headers", {})
    found = head_differences(head, ours.headers)
    if head and "content-type" not in head and ours.body:
        found.append("a body is new")
    if "shape" in recorded:
        found += Replay.compared(recorded["shape"], ours.json)
    return found


def head_differences(recorded: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Where a header that means something is another one; none is compared if none was kept."""
    found = [
        f"{name}: {ours.get(name, 'nothing')} instead of {value}"
        for name, value in recorded.items()
        if not _covers(name, ours.get(name, ""), value)
    ]
    new = [name for name in ours if name.startswith(_TELLING) and name not in recorded]
    return found + [f"{name} is new" for name in new if recorded]


def _covers(name: str, ours: str, recorded: str) -> bool:
    if name == "vary":
        return _listed(recorded) <= _listed(ours)
    if name == "content-type":
        return ours.partition(";")[0] == recorded
    return ours == recorded


def _listed(value: str) -> set[str]:
    return {each.strip().lower() for each in value.split(",")}
