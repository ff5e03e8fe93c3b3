"""The instance in V1: its health, its log, and the features that a client asks about."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import JsonObject, Payload, Record
from perdure.schema.ids import SuppliedSessionID


class V1Health(Record):
    healthy: bool
    version: str


class V1FeatureSet(Record):
    background_subagents: bool


class V1Console(Record):
    console_managed_providers: tuple[str, ...]
    switchable_org_count: int


class WriteV1Log(Payload):
    service: Annotated[str, Meta(max_length=200)]
    level: Literal["debug", "info", "error", "warn"]
    message: Annotated[str, Meta(max_length=10_000)]
    extra: JsonObject | None = None


class V1LanguageServer(Record):
    id: str
    name: str
    root: str
    status: Literal["connected", "error"]


class V1Formatter(Record):
    name: str
    extensions: tuple[str, ...]
    enabled: bool


class V1Tool(Record):
    id: str
    description: str
    parameters: JsonObject


class ListV1Tools(Payload):
    provider: str
    model: str


class V1Adapter(Record):
    type: str
    name: str
    description: str


class V1Destination(Record):
    directory: str


class MoveV1Session(Payload):
    session_id: SuppliedSessionID
    destination: V1Destination
    move_changes: bool | None = None


HEALTH: Final = declare("GET", "/global/health", "global.health", V1Health)
LOG: Final = declare("POST", "/log", "app.log", bool, body=WriteV1Log)
DISPOSE: Final = declare("POST", "/instance/dispose", "instance.dispose", bool)
DISPOSE_ALL: Final = declare("POST", "/global/dispose", "global.dispose", bool)
CAPABILITIES: Final = declare(
    "GET", "/experimental/capabilities", "experimental.capabilities.get", V1FeatureSet
)
CONSOLE: Final = declare("GET", "/experimental/console", "experimental.console.get", V1Console)
RESOURCES: Final = declare(
    "GET", "/experimental/resource", "experimental.resource.list", dict[str, JsonObject]
)
WORKSPACES: Final = declare(
    "GET", "/experimental/workspace", "experimental.workspace.list", tuple[JsonObject, ...]
)
WORKSPACE_STATUS: Final = declare(
    "GET",
    "/experimental/workspace/status",
    "experimental.workspace.status",
    tuple[JsonObject, ...],
)
WORKSPACE_ADAPTERS: Final = declare(
    "GET",
    "/experimental/workspace/adapter",
    "experimental.workspace.adapter.list",
    tuple[V1Adapter, ...],
)
TOOLS: Final = declare(
    "GET", "/experimental/tool", "tool.list", tuple[V1Tool, ...], query=ListV1Tools
)
TOOL_IDS: Final = declare("GET", "/experimental/tool/ids", "tool.ids", tuple[str, ...])
LANGUAGE_SERVERS: Final = declare("GET", "/lsp", "lsp.status", tuple[V1LanguageServer, ...])
FORMATTERS: Final = declare("GET", "/formatter", "formatter.status", tuple[V1Formatter, ...])
WORKTREES: Final = declare("GET", "/experimental/worktree", "worktree.list", tuple[str, ...])
MOVE_SESSION: Final = declare(
    "POST",
    "/experimental/control-plane/move-session",
    "experimental.controlPlane.moveSession",
    None,
    body=MoveV1Session,
)

ENDPOINTS: Final = (
    HEALTH,
    LOG,
    DISPOSE,
    DISPOSE_ALL,
    CAPABILITIES,
    CONSOLE,
    RESOURCES,
    WORKSPACES,
    WORKSPACE_STATUS,
    WORKSPACE_ADAPTERS,
    TOOLS,
    TOOL_IDS,
    LANGUAGE_SERVERS,
    FORMATTERS,
    WORKTREES,
    MOVE_SESSION,
)
