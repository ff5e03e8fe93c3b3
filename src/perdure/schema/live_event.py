"""Live events: fragments and lifecycle. They are sent to current listeners and never stored.

They advance no cursor. After a reconnect only the durable full values are available.
"""

from collections.abc import Mapping
from typing import Final

from perdure.schema.approval.permission import PermissionRequest, Reply
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import Record
from perdure.schema.files.pty import PtyInfo
from perdure.schema.ids import (
    MessageID,
    PermissionID,
    PtyID,
    QuestionID,
    Seq,
    SessionID,
    ToolCallID,
)
from perdure.schema.session.status import SessionStatus
from perdure.schema.session.todo import Todos
from perdure.schema.settings.trust import TrustWish


class LiveFact(Record):
    pass


class ServerConnected(LiveFact):
    pass


class ServerLagged(LiveFact):
    """The last event to a reader that could not keep up: refresh, then subscribe again."""

    reason: str


class InstanceDisposed(LiveFact):
    """The last event of a server that is shutting down."""


class SessionReplayed(LiveFact):
    """Ends the replay of a durable stream: what follows is new. `seq` is the last that it told."""

    session_id: SessionID
    seq: Seq


class Fragment(LiveFact):
    timestamp: int
    session_id: SessionID


class TextDelta(Fragment):
    """`cursor` counts the deltas of a part, from 1; a part of a message tells the last it has."""

    assistant_message_id: MessageID
    text_id: str
    delta: str
    cursor: int


class ReasoningDelta(Fragment):
    assistant_message_id: MessageID
    reasoning_id: str
    delta: str
    cursor: int


class ToolInputDelta(Fragment):
    assistant_message_id: MessageID
    call_id: ToolCallID
    delta: str
    cursor: int


class CompactionDelta(Fragment):
    """A piece of the summary; `message_id` is the id of the message if it completes."""

    message_id: MessageID
    text: str


class StatusChanged(LiveFact):
    """A Session started to run, waits to send a request again, or became idle."""

    session_id: SessionID
    status: SessionStatus


class PermissionReplied(LiveFact):
    session_id: SessionID
    request_id: PermissionID
    reply: Reply


class QuestionReplied(LiveFact):
    session_id: SessionID
    request_id: QuestionID
    answers: Answers


class QuestionRejected(LiveFact):
    session_id: SessionID
    request_id: QuestionID


class TodosChanged(LiveFact):
    """The todo list of a Session changed; the log contains it too."""

    session_id: SessionID
    todos: Todos


class IntegrationsChanged(LiveFact):
    """The integrations changed: list them again."""


class ConnectionChanged(LiveFact):
    """A credential of this integration was stored, renamed, removed or lost."""

    integration_id: str


class ModelsRefreshed(LiveFact):
    """Newer facts about models were fetched."""


class CatalogChanged(LiveFact):
    """The usable models changed: list them again."""


class TrustChanged(LiveFact):
    """A project was trusted, or its configuration asks for other things than before.

    As `GET /api/location/trust` answers now for the Location of the event.
    """

    trusted: bool
    off: tuple[TrustWish, ...]


class McpChanged(LiveFact):
    """The state or the tools of an MCP server changed: list them again."""


class FileEdited(LiveFact):
    """A tool has changed, created or removed the file at this path."""

    file: str


class PtyCreated(LiveFact):
    info: PtyInfo


class PtyUpdated(LiveFact):
    info: PtyInfo


class PtyExited(LiveFact):
    id: PtyID
    exit_code: int


class PtyDeleted(LiveFact):
    id: PtyID


LiveEvent = (
    ServerConnected
    | ServerLagged
    | InstanceDisposed
    | SessionReplayed
    | TextDelta
    | ReasoningDelta
    | ToolInputDelta
    | CompactionDelta
    | StatusChanged
    | PermissionRequest
    | PermissionReplied
    | QuestionRequest
    | QuestionReplied
    | QuestionRejected
    | IntegrationsChanged
    | ConnectionChanged
    | CatalogChanged
    | ModelsRefreshed
    | TodosChanged
    | TrustChanged
    | McpChanged
    | FileEdited
    | PtyCreated
    | PtyUpdated
    | PtyExited
    | PtyDeleted
)

LIVE_TYPES: Final[Mapping[type[LiveEvent], str]] = {
    ServerConnected: "server.connected",
    ServerLagged: "server.lagged",
    InstanceDisposed: "server.instance.disposed",
    SessionReplayed: "session.replayed",
    TextDelta: "session.next.text.delta",
    ReasoningDelta: "session.next.reasoning.delta",
    ToolInputDelta: "session.next.tool.input.delta",
    CompactionDelta: "session.next.compaction.delta",
    StatusChanged: "session.status",
    PermissionRequest: "permission.v2.asked",
    PermissionReplied: "permission.v2.replied",
    QuestionRequest: "question.v2.asked",
    QuestionReplied: "question.v2.replied",
    QuestionRejected: "question.v2.rejected",
    IntegrationsChanged: "integration.updated",
    ConnectionChanged: "integration.connection.updated",
    CatalogChanged: "catalog.updated",
    ModelsRefreshed: "models-dev.refreshed",
    TodosChanged: "todo.updated",
    TrustChanged: "location.trust.updated",
    McpChanged: "mcp.changed",
    FileEdited: "file.edited",
    PtyCreated: "pty.created",
    PtyUpdated: "pty.updated",
    PtyExited: "pty.exited",
    PtyDeleted: "pty.deleted",
}
