"""Session operations: create, find, prompt, steer, observe."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject, Payload
from perdure.schema.errors import (
    DamagedRowError,
    InboxFullError,
    InvalidCursorError,
    MoveConflictError,
    PromptConflictError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
    UnknownError,
)
from perdure.schema.ids import (
    SessionID,
    SuppliedMessageID,
    SuppliedSessionID,
    SuppliedWorkspaceID,
)
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.query import Order
from perdure.schema.session.compaction import CompactionReport
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.prompt import AgentMention, Delivery, FileInput, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.request_preview import ProviderContext
from perdure.schema.session.session import SessionActivity, SessionInfo
from perdure.schema.settings.session_mcp import GivenMcpServers

SESSIONS_PER_PAGE_MAX: Final = 200
"""A larger `limit` is reduced to this, because older clients ask for thousands."""
HISTORY_LIMIT_MAX: Final = 100
INSTRUCTION_CHARS_MAX: Final = 16 * 1024


class CreateSession(Payload, frozen=True):
    id: SuppliedSessionID | None = None
    agent: str | None = None
    model: ModelRef | None = None
    location: LocationRef | None = None
    title: str | None = None
    metadata: JsonObject | None = None
    """Facts of the client, returned with the Session."""
    permissions: SessionRules | None = None
    """Permission rules of the Session. They narrow the configured ones, and allow what these ask
    about."""
    mcp: GivenMcpServers | None = None
    """MCP servers that only this Session uses, by name. They are stored as credentials are, and
    never shown."""


class ListSessions(Payload, frozen=True):
    limit: Annotated[int, Meta(gt=0)] | None = None
    order: Order | None = None
    search: str | None = None
    directory: str | None = None
    workspace: SuppliedWorkspaceID | None = None
    project: str | None = None
    subpath: str | None = None
    archived: Literal["true", "false"] | None = None
    """Only archived Sessions, or only others; both if omitted."""
    cursor: str | None = None


class CompactSession(Payload, frozen=True):
    instruction: Annotated[str, Meta(max_length=INSTRUCTION_CHARS_MAX)] | None = None
    """Additional instruction for the summary."""


class SwitchAgent(Payload, frozen=True):
    agent: str


class SwitchModel(Payload, frozen=True):
    model: ModelRef


class MoveSession(Payload, frozen=True):
    destination: LocationRef
    move_changes: bool | None = None
    """Also move the uncommitted changes of the work tree."""


class PromptSession(Payload, frozen=True):
    prompt: PromptInput
    id: SuppliedMessageID | None = None
    delivery: Delivery | None = None
    resume: bool | None = None


class FlatPrompt(Payload, frozen=True):
    """A prompt whose text stands beside the options, as later clients send it."""

    text: str
    files: tuple[FileInput, ...] | None = None
    agents: tuple[AgentMention, ...] | None = None
    id: SuppliedMessageID | None = None
    delivery: Delivery | None = None
    resume: bool | None = None

    def to_body(self) -> PromptSession:
        prompt = PromptInput(self.text, self.files or UNSET, self.agents or UNSET)
        return PromptSession(prompt, self.id, self.delivery, self.resume)


class ReadHistory(Payload, frozen=True):
    limit: Annotated[int, Meta(gt=0, le=HISTORY_LIMIT_MAX)] | None = None
    after: Annotated[int, Meta(ge=0)] | None = None


class FollowEvents(Payload, frozen=True):
    """`replayed=true` asks for the event `session.replayed` where the replay ends."""

    after: Annotated[int, Meta(ge=0)] | None = None
    replayed: Literal["true", "false"] | None = None


_GROUP: Final = "sessions"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)

CREATE: Final = Endpoint(
    operation_id="v2.session.create",
    method="POST",
    path="/api/session",
    group=_GROUP,
    body=CreateSession,
    body_optional=True,
    success=Success("data", SessionInfo),
    errors=(*REFUSALS, DamagedRowError),
)
LIST: Final = Endpoint(
    operation_id="v2.session.list",
    method="GET",
    path="/api/session",
    group=_GROUP,
    query=ListSessions,
    success=Success("page", SessionInfo),
    errors=(*REFUSALS, InvalidCursorError),
)
ACTIVE: Final = Endpoint(
    operation_id="v2.session.active",
    method="GET",
    path="/api/session/active",
    group=_GROUP,
    success=Success("data", dict[SessionID, SessionActivity]),
)
GET: Final = Endpoint(
    operation_id="v2.session.get",
    method="GET",
    path="/api/session/{sessionID}",
    group=_GROUP,
    scope="session",
    success=Success("data", SessionInfo),
    errors=_ON_SESSION,
)
SWITCH_AGENT: Final = Endpoint(
    operation_id="v2.session.switchAgent",
    method="POST",
    path="/api/session/{sessionID}/agent",
    group=_GROUP,
    scope="session",
    body=SwitchAgent,
    success=Success("no_content"),
    errors=_ON_SESSION,
)
SWITCH_MODEL: Final = Endpoint(
    operation_id="v2.session.switchModel",
    method="POST",
    path="/api/session/{sessionID}/model",
    group=_GROUP,
    scope="session",
    body=SwitchModel,
    success=Success("no_content"),
    errors=_ON_SESSION,
)
MOVE: Final = Endpoint(
    operation_id="v2.session.move",
    method="POST",
    path="/api/session/{sessionID}/move",
    group=_GROUP,
    scope="session",
    body=MoveSession,
    success=Success("no_content"),
    errors=(*_ON_SESSION, SessionBusyError, MoveConflictError, ServiceUnavailableError),
)
PROMPT: Final = Endpoint(
    operation_id="v2.session.prompt",
    method="POST",
    path="/api/session/{sessionID}/prompt",
    group=_GROUP,
    scope="session",
    body=PromptSession,
    other_body=FlatPrompt,
    success=Success("data", AdmittedPrompt),
    errors=(*_ON_SESSION, PromptConflictError, InboxFullError),
)
INTERRUPT: Final = Endpoint(
    operation_id="v2.session.interrupt",
    method="POST",
    path="/api/session/{sessionID}/interrupt",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=_ON_SESSION,
)
COMPACT: Final = Endpoint(
    operation_id="v2.session.compact",
    method="POST",
    path="/api/session/{sessionID}/compact",
    group=_GROUP,
    scope="session",
    body=CompactSession,
    body_optional=True,
    success=Success("no_content"),
    errors=(*_ON_SESSION, ServiceUnavailableError),
)
COMPACT_WITH_REPORT: Final = Endpoint(
    operation_id="v2.session.compaction",
    method="POST",
    path="/api/session/{sessionID}/compaction",
    group=_GROUP,
    scope="session",
    body=CompactSession,
    body_optional=True,
    success=Success("data", CompactionReport),
    errors=(*_ON_SESSION, ServiceUnavailableError),
)
WAIT: Final = Endpoint(
    operation_id="v2.session.wait",
    method="POST",
    path="/api/session/{sessionID}/wait",
    group=_GROUP,
    scope="session",
    success=Success("no_content"),
    errors=(*_ON_SESSION, ServiceUnavailableError),
)
CONTEXT: Final = Endpoint(
    operation_id="v2.session.context",
    method="GET",
    path="/api/session/{sessionID}/context",
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[SessionMessage, ...]),
    errors=(*_ON_SESSION, UnknownError),
)
PROVIDER_CONTEXT: Final = Endpoint(
    operation_id="v2.session.providerContext",
    method="GET",
    path="/api/session/{sessionID}/provider-context",
    group=_GROUP,
    scope="session",
    success=Success("data", ProviderContext),
    errors=(*_ON_SESSION, UnknownError),
)
HISTORY: Final = Endpoint(
    operation_id="v2.session.history",
    method="GET",
    path="/api/session/{sessionID}/history",
    group=_GROUP,
    scope="session",
    query=ReadHistory,
    success=Success("history", SessionEvent),
    errors=_ON_SESSION,
)
EVENTS: Final = Endpoint(
    operation_id="v2.session.events",
    method="GET",
    path="/api/session/{sessionID}/event",
    group=_GROUP,
    scope="session",
    query=FollowEvents,
    success=Success("durable_stream", SessionEvent),
    errors=_ON_SESSION,
)

ENDPOINTS: Final = (
    CREATE,
    LIST,
    ACTIVE,
    GET,
    SWITCH_AGENT,
    SWITCH_MODEL,
    MOVE,
    PROMPT,
    INTERRUPT,
    COMPACT,
    COMPACT_WITH_REPORT,
    WAIT,
    CONTEXT,
    PROVIDER_CONTEXT,
    HISTORY,
    EVENTS,
)
