"""Messages in V1: what a person sent and what a model answered, each with its parts."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.protocol.v1.part import AnyV1Part, V1PartType, V1SourceText
from perdure.schema.codec import JsonObject, Payload, Record
from perdure.schema.models.model import TokenUsage


class V1ModelChoice(Record):
    provider_id: str
    model_id: str
    variant: str | UnsetType = UNSET


class V1MessageTime(Record):
    created: int
    completed: int | UnsetType = UNSET


class V1User(Record, tag_field="role", tag="user"):
    id: str
    session_id: str
    time: V1MessageTime
    agent: str
    model: V1ModelChoice


class V1ErrorData(Record):
    message: str


class V1Error(Record):
    name: Literal["UnknownError", "MessageAbortedError"]
    data: V1ErrorData


class V1Path(Record):
    cwd: str
    root: str


class V1Assistant(Record, tag_field="role", tag="assistant"):
    id: str
    session_id: str
    time: V1MessageTime
    parent_id: str
    model_id: str
    provider_id: str
    mode: str
    agent: str
    path: V1Path
    cost: float
    tokens: TokenUsage
    summary: bool | UnsetType = UNSET
    finish: str | UnsetType = UNSET
    error: V1Error | UnsetType = UNSET


V1MessageInfo = V1User | V1Assistant


class V1Message(Record):
    info: V1MessageInfo
    parts: tuple[AnyV1Part, ...]


class ListV1Messages(Payload):
    limit: int | None = None
    before: str | None = None


class V1SourceInput(Record):
    """The place in the prompt's text that names a file; `path` is not needed to find it."""

    text: V1SourceText


class V1PartInput(Record):
    """A part of a prompt; the fields of the other types are not set."""

    type: V1PartType
    text: str | UnsetType = UNSET
    mime: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    source: JsonObject | UnsetType = UNSET


class PromptV1Session(Payload):
    parts: tuple[V1PartInput, ...]
    message_id: str | None = None
    model: V1ModelChoice | None = None
    agent: str | None = None
    no_reply: bool | None = None
    variant: str | None = None
    tools: dict[str, bool] | None = None
    format: JsonObject | None = None
    system: str | None = None


_MESSAGES: Final = "/session/{sessionID}/message"

LIST: Final = declare(
    "GET", _MESSAGES, "session.messages", tuple[V1Message, ...], query=ListV1Messages
)
GET: Final = declare("GET", f"{_MESSAGES}/{{messageID}}", "session.message", V1Message)
PROMPT: Final = declare("POST", _MESSAGES, "session.prompt", V1Message, body=PromptV1Session)
PROMPT_ASYNC: Final = declare(
    "POST",
    "/session/{sessionID}/prompt_async",
    "session.prompt_async",
    None,
    body=PromptV1Session,
)

ENDPOINTS: Final = (LIST, GET, PROMPT, PROMPT_ASYNC)
