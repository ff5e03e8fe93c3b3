"""The tools of the server: their names, what they take, and how they are described."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject

_Text = Annotated[str, Meta(min_length=1, max_length=limits.MCP_SERVER_PROMPT_CHARS_MAX)]
_Key = Annotated[str, Meta(min_length=1, max_length=limits.MCP_SERVER_KEY_CHARS_MAX)]
_Seconds = Annotated[float, Meta(ge=0, le=limits.MCP_SERVER_WAIT_SECONDS_MAX)]


class _Arguments(codec.Value, forbid_unknown_fields=True):
    """Names as the client writes them."""


class StartSession(_Arguments, frozen=True):
    prompt: _Text
    directory: str | UnsetType = UNSET
    key: _Key | UnsetType = UNSET
    model: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    title: str | UnsetType = UNSET


class SendPrompt(_Arguments, frozen=True):
    session: str
    prompt: _Text
    delivery: Literal["steer", "queue"] = "steer"
    key: _Key | UnsetType = UNSET


class WaitForSession(_Arguments, frozen=True):
    session: str
    seconds: _Seconds = limits.MCP_SERVER_WAIT_SECONDS


class ListSessions(_Arguments, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=limits.MCP_SERVER_LISTED_MAX)] = 20
    directory: str | UnsetType = UNSET


class ReadResult(_Arguments, frozen=True):
    session: str
    offset: Annotated[int, Meta(ge=0)] = 0


class ReplyToRequest(_Arguments, frozen=True):
    session: str
    request: str
    reply: Literal["once", "always", "reject"] | UnsetType = UNSET
    answers: tuple[tuple[str, ...], ...] | UnsetType = UNSET
    message: str | UnsetType = UNSET


SHAPES: Final = {
    "session_start": StartSession,
    "session_send": SendPrompt,
    "session_wait": WaitForSession,
    "session_list": ListSessions,
    "session_result": ReadResult,
    "session_reply": ReplyToRequest,
}


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _tool(
    name: str, description: str, required: tuple[str, ...], **fields: JsonObject
) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": dict(fields)}
    return {
        "name": name,
        "description": description,
        "inputSchema": {**schema, "required": list(required), "additionalProperties": False},
    }


_SESSION: Final = _text("The id of the session, as session_start returned it.")
_KEY_HELP: Final = "A name of your own for this call. The same key again does nothing twice."

TOOLS: Final[tuple[JsonObject, ...]] = (
    _tool(
        "session_start",
        "Start a coding session with a prompt. It returns at once with the id of the session; the"
        " work goes on by itself and is stored, also when you or this server restart. Give a `key`"
        " so that repeating the call finds the same session instead of starting another one. Then"
        " call session_wait.",
        ("prompt",),
        prompt=_text("What the session should do."),
        directory=_text("The directory to work in; that of this server if absent."),
        key=_text(_KEY_HELP),
        model=_text("provider/model; the configured one if absent."),
        agent=_text("The agent that works, such as build or plan."),
        title=_text("A title for lists."),
    ),
    _tool(
        "session_send",
        "Say something to a session. `steer` joins the work in progress, `queue` waits for its"
        " end.",
        ("session", "prompt"),
        session=_SESSION,
        prompt=_text("What to say."),
        delivery={"type": "string", "enum": ["steer", "queue"], "description": "steer if absent."},
        key=_text(_KEY_HELP),
    ),
    _tool(
        "session_wait",
        "Wait until a session is done or needs a decision, and return its state and result. It"
        " returns `running` when the seconds are over: then call it again. Nothing is lost by not"
        " waiting.",
        ("session",),
        session=_SESSION,
        seconds={
            "type": "number",
            "minimum": 0,
            "maximum": limits.MCP_SERVER_WAIT_SECONDS_MAX,
            "description": f"At most so long; {limits.MCP_SERVER_WAIT_SECONDS:g} if absent.",
        },
    ),
    _tool(
        "session_list",
        "List sessions, the newest first, with their states.",
        (),
        limit={"type": "integer", "minimum": 1, "maximum": limits.MCP_SERVER_LISTED_MAX},
        directory=_text("Only those that work in this directory."),
    ),
    _tool(
        "session_result",
        "Return the result of a session without waiting. `delivered` says whether this result is"
        " returned for the first time or was returned before.",
        ("session",),
        session=_SESSION,
        offset={
            "type": "integer",
            "minimum": 0,
            "description": "Where to go on in a result that was too long to be returned at once.",
        },
    ),
    _tool(
        "session_reply",
        "Answer a request that a session waits for: `reply` for a permission, `answers` (a list of"
        " labels for each question, in order) for questions. Ask your user first.",
        ("session", "request"),
        session=_SESSION,
        request=_text("The id of the request, as session_wait returned it."),
        reply={"type": "string", "enum": ["once", "always", "reject"]},
        answers={"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        message=_text("With `reject`: what the session should do instead."),
    ),
)
