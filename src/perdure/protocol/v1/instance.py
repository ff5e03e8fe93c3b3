"""The instance in V1: its health, its log, and the features that a client asks about."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import JsonObject, Payload, Record


class V1Health(Record):
    healthy: bool
    version: str


class V1FeatureSet(Record):
    background_subagents: bool


class V1Console(Record):
    console_managed_providers: tuple[str, ...]
    switchable_org_count: int


class WriteV1Log(Payload):
    service: str
    level: Literal["debug", "info", "error", "warn"]
    message: str
    extra: JsonObject | None = None


class V1ServerStatus(Record):
    """A language server or a formatter that is configured, and whether it runs."""

    name: str
    id: str | UnsetType = UNSET


HEALTH: Final = declare("GET", "/global/health", "global.health", V1Health)
LOG: Final = declare("POST", "/log", "app.log", bool, body=WriteV1Log)
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
LANGUAGE_SERVERS: Final = declare("GET", "/lsp", "lsp.status", tuple[V1ServerStatus, ...])
FORMATTERS: Final = declare("GET", "/formatter", "formatter.status", tuple[V1ServerStatus, ...])

ENDPOINTS: Final = (
    HEALTH,
    LOG,
    CAPABILITIES,
    CONSOLE,
    RESOURCES,
    WORKSPACES,
    WORKSPACE_STATUS,
    LANGUAGE_SERVERS,
    FORMATTERS,
)
