"""MCP servers of a Location: their state, restarts and logins."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.errors import McpServerNotFoundError, ServiceUnavailableError
from perdure.schema.models.integration import Attempt
from perdure.schema.settings.mcp import McpServerInfo

_GROUP: Final = "mcp"
_ON_SERVER: Final = (*REFUSALS, McpServerNotFoundError)
_ON_LOGIN: Final = (*_ON_SERVER, ServiceUnavailableError)

LIST: Final = Endpoint(
    operation_id="v2.mcp.list",
    method="GET",
    path="/api/mcp",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[McpServerInfo, ...]),
)
RESTART: Final = Endpoint(
    operation_id="v2.mcp.restart",
    method="POST",
    path="/api/mcp/{name}/restart",
    group=_GROUP,
    scope="location",
    success=Success("location_data", McpServerInfo),
    errors=_ON_SERVER,
)
LOGIN: Final = Endpoint(
    operation_id="v2.mcp.login",
    method="POST",
    path="/api/mcp/{name}/login",
    group=_GROUP,
    scope="location",
    success=Success("location_data", Attempt),
    errors=_ON_LOGIN,
)
LOGOUT: Final = Endpoint(
    operation_id="v2.mcp.logout",
    method="POST",
    path="/api/mcp/{name}/logout",
    group=_GROUP,
    scope="location",
    success=Success("no_content"),
    errors=_ON_LOGIN,
)

ENDPOINTS: Final = (LIST, RESTART, LOGIN, LOGOUT)
