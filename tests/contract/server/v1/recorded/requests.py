"""The requests of one day with two published clients, in their order, and the recorded statuses.

Words in capitals stand for what a replay fills in. Requests that only repeat others are left out.
"""

from typing import Final

from msgspec import field

from perdure.schema.codec import JsonObject
from perdure.schema.value import Value


class RecordedRequest(Value):
    method: str
    path: str
    body: JsonObject | None = None
    status: int = 200
    answers: str = ""
    """What the scripted model says when it is asked because of this request."""
    keeps: str = field(default="")
    """The word that the id in the answer replaces in the paths that follow."""


def _get(*paths: str) -> tuple[RecordedRequest, ...]:
    return tuple(RecordedRequest("GET", path) for path in paths)


_MODEL: Final = {"providerID": "fake", "modelID": "fake-model"}
_TEXT: Final = [{"type": "text", "text": "please look at hello.txt"}]
_MENTION: Final = {
    "type": "file",
    "mime": "text/plain",
    "filename": "hello.txt",
    "url": "file://DIRECTORY/hello.txt",
    "source": {
        "text": {"value": "@hello.txt", "start": 0, "end": 10},
        "path": "hello.txt",
        "type": "file",
    },
}

TERMINAL_CLIENT: Final = (
    *_get(
        "/config",
        "/path",
        "/project/current",
        "/experimental/capabilities",
        "/experimental/console",
        "/project/PROJECT/directories",
        "/session?start=1792256020363&path=",
        "/agent",
        "/config/providers",
        "/provider",
        "/command",
        "/mcp",
        "/experimental/resource",
        "/formatter",
        "/session/status",
        "/provider/auth",
        "/vcs",
        "/experimental/workspace",
        "/lsp",
        "/experimental/workspace/status",
    ),
    RecordedRequest(
        "POST",
        "/session?directory=DIRECTORY",
        {"agent": "build", "model": {"providerID": "fake", "id": "fake-model"}},
        keeps="SESSION",
    ),
    *_get("/session/SESSION"),
    RecordedRequest(
        "POST",
        "/session/SESSION/message",
        {"agent": "build", "model": _MODEL, "parts": _TEXT},
        answers="All done.",
        keeps="ANSWER",
    ),
    *_get(
        "/session/SESSION/message?limit=100",
        "/session/SESSION/todo",
        "/session/SESSION/diff",
    ),
    RecordedRequest("POST", "/session/SESSION/abort"),
    RecordedRequest(
        "POST",
        "/session/SESSION/command",
        {
            "command": "hello",
            "arguments": "bob",
            "agent": "build",
            "model": "fake/fake-model",
            "parts": [],
        },
        answers="hello to bob",
    ),
    RecordedRequest(
        "POST",
        "/session/SESSION/shell",
        {"agent": "build", "model": _MODEL, "command": "ls -1"},
        keeps="SHELL",
    ),
    RecordedRequest("POST", "/session/SESSION/revert", {"messageID": "PROMPT"}),
    RecordedRequest("POST", "/session/SESSION/unrevert"),
    *_get("/session?roots=true&limit=100&path="),
    RecordedRequest(
        "POST",
        "/session/SESSION/summarize",
        {"modelID": "fake-model", "providerID": "fake"},
        answers="A summary.",
    ),
    RecordedRequest("POST", "/session/SESSION/fork", {"messageID": "SHELLNOTE"}, keeps="SESSION"),
    RecordedRequest("PATCH", "/session/SESSION", {"title": "renamed"}),
    RecordedRequest(
        "POST",
        "/session/SESSION/message",
        {"agent": "build", "model": _MODEL, "parts": [*_TEXT, _MENTION]},
        answers="It says hello.",
    ),
)

WEB_APP: Final = (
    *_get(
        "/global/health",
        "/lsp?directory=DIRECTORY",
        "/global/config",
        "/provider",
        "/path?directory=DIRECTORY",
        "/experimental/resource?directory=DIRECTORY",
        "/mcp?directory=DIRECTORY",
        "/agent?directory=DIRECTORY",
        "/command?directory=DIRECTORY",
        "/session?directory=DIRECTORY&roots=true&limit=55",
        "/config?directory=DIRECTORY",
        "/session/status?directory=DIRECTORY",
        "/provider?directory=DIRECTORY",
        "/permission?directory=DIRECTORY",
        "/vcs?directory=DIRECTORY",
        "/question?directory=DIRECTORY",
        "/project",
        "/project/current?directory=DIRECTORY",
    ),
    RecordedRequest("POST", "/session?directory=DIRECTORY", keeps="SESSION"),
    *_get("/session/SESSION/message?limit=20", "/session/SESSION"),
    RecordedRequest(
        "POST",
        "/session/SESSION/prompt_async",
        {
            "messageID": "msg_1e5591ba6001WP4ujrNIVzl5x3",
            "agent": "build",
            "model": _MODEL,
            "parts": [
                {"id": "prt_1e5591ba800175439IQ21rJZEO", "type": "text", "text": "hello web"}
            ],
        },
        204,
        answers="Hello.",
    ),
    *_get("/session/SESSION/todo"),
)

TURN: Final = (
    "message.updated user",
    "part text",
    "session.updated",
    "status busy",
    "message.updated assistant",
    "part step-start",
    "part text",
    "message.part.delta",
    "part text",
    "part step-finish",
    "message.updated assistant done",
    "status idle",
    "session.idle",
    "session.diff",
)
"""The events of a turn that answers with a text, in the recorded order. What the published server
repeats, and what it tells of titles and of the prompt afterwards, is left out."""
