"""Sessions in V1: one flat record, and the operations on a Session as a whole."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.protocol.v1.rule import V1Rule
from perdure.schema.codec import JsonObject, Payload, Record
from perdure.schema.models.model import ModelRef, TokenUsage
from perdure.schema.session.session import SessionTime
from perdure.schema.session.todo import Todos


class V1Revert(Record):
    message_id: str
    part_id: str | UnsetType = UNSET
    snapshot: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET


class V1Session(Record):
    id: str
    slug: str
    project_id: str
    directory: str
    path: str
    title: str
    version: str
    cost: float
    tokens: TokenUsage
    time: SessionTime
    workspace_id: str | UnsetType = UNSET
    parent_id: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: ModelRef | UnsetType = UNSET
    metadata: JsonObject | UnsetType = UNSET
    permission: tuple[V1Rule, ...] | UnsetType = UNSET
    revert: V1Revert | UnsetType = UNSET


class V1Status(Record):
    """The activity of a Session. The other fields are set for `retry`."""

    type: Literal["idle", "busy", "retry"]
    attempt: int | UnsetType = UNSET
    message: str | UnsetType = UNSET
    next: int | UnsetType = UNSET


class ListV1Sessions(Payload):
    directory: str | None = None
    path: str | None = None
    roots: str | None = None
    start: float | None = None
    search: str | None = None
    limit: int | None = None


class CreateV1Session(Payload):
    parent_id: str | None = None
    title: str | None = None
    agent: str | None = None
    model: ModelRef | None = None
    metadata: JsonObject | None = None
    permission: tuple[V1Rule, ...] | None = None
    workspace_id: str | None = None


class V1TimeChange(Record):
    archived: float | UnsetType = UNSET


class UpdateV1Session(Payload):
    title: str | None = None
    metadata: JsonObject | None = None
    permission: tuple[V1Rule, ...] | None = None
    time: V1TimeChange | None = None


class ForkV1Session(Payload):
    message_id: str | None = None


class RevertV1Session(Payload):
    message_id: str
    part_id: str | None = None


class SummarizeV1Session(Payload):
    provider_id: str | None = None
    model_id: str | None = None
    auto: bool | None = None


_SESSION: Final = "/session/{sessionID}"

LIST: Final = declare(
    "GET", "/session", "session.list", tuple[V1Session, ...], query=ListV1Sessions
)
CREATE: Final = declare(
    "POST", "/session", "session.create", V1Session, body=CreateV1Session, body_optional=True
)
STATUS: Final = declare("GET", "/session/status", "session.status", dict[str, V1Status])
GET: Final = declare("GET", _SESSION, "session.get", V1Session)
UPDATE: Final = declare("PATCH", _SESSION, "session.update", V1Session, body=UpdateV1Session)
DELETE: Final = declare("DELETE", _SESSION, "session.delete", bool)
CHILDREN: Final = declare("GET", f"{_SESSION}/children", "session.children", tuple[V1Session, ...])
TODO: Final = declare("GET", f"{_SESSION}/todo", "session.todo", Todos)
ABORT: Final = declare("POST", f"{_SESSION}/abort", "session.abort", bool)
FORK: Final = declare(
    "POST", f"{_SESSION}/fork", "session.fork", V1Session, body=ForkV1Session, body_optional=True
)
REVERT: Final = declare(
    "POST", f"{_SESSION}/revert", "session.revert", V1Session, body=RevertV1Session
)
UNREVERT: Final = declare("POST", f"{_SESSION}/unrevert", "session.unrevert", V1Session)
SUMMARIZE: Final = declare(
    "POST",
    f"{_SESSION}/summarize",
    "session.summarize",
    bool,
    body=SummarizeV1Session,
    body_optional=True,
)

ENDPOINTS: Final = (
    LIST,
    CREATE,
    STATUS,
    GET,
    UPDATE,
    DELETE,
    CHILDREN,
    TODO,
    ABORT,
    FORK,
    REVERT,
    UNREVERT,
    SUMMARIZE,
)
