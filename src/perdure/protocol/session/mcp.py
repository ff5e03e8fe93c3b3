"""The MCP servers of one Session: those of its Location, and those that clients gave to it alone.

This is an extension of the published contract, in its style. What was given is never shown: it may
hold secrets.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import ConfidentialPayload
from perdure.schema.errors import (
    McpServerNotFoundError,
    ServiceUnavailableError,
    SessionNotFoundError,
)
from perdure.schema.models.integration import Attempt
from perdure.schema.settings.mcp import McpServerInfo
from perdure.schema.settings.session_mcp import GivenMcpServers


class SetMcpServers(ConfidentialPayload, frozen=True):
    """Replaces the servers that were given before; none removes them."""

    servers: GivenMcpServers


_GROUP: Final = "sessions"
_PATH: Final = "/api/session/{sessionID}/mcp"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError)
_ON_SERVER: Final = (*_ON_SESSION, McpServerNotFoundError)

LIST: Final = Endpoint(
    operation_id="v2.session.mcp.list",
    method="GET",
    path=_PATH,
    group=_GROUP,
    scope="session",
    success=Success("data", tuple[McpServerInfo, ...]),
    errors=_ON_SESSION,
)
SET: Final = Endpoint(
    operation_id="v2.session.mcp.set",
    method="PUT",
    path=_PATH,
    group=_GROUP,
    scope="session",
    body=SetMcpServers,
    success=Success("data", tuple[McpServerInfo, ...]),
    errors=(*_ON_SESSION, ServiceUnavailableError),
)
RESTART: Final = Endpoint(
    operation_id="v2.session.mcp.restart",
    method="POST",
    path=f"{_PATH}/{{name}}/restart",
    group=_GROUP,
    scope="session",
    success=Success("data", McpServerInfo),
    errors=_ON_SERVER,
)
LOGIN: Final = Endpoint(
    operation_id="v2.session.mcp.login",
    method="POST",
    path=f"{_PATH}/{{name}}/login",
    group=_GROUP,
    scope="session",
    success=Success("data", Attempt),
    errors=(*_ON_SERVER, ServiceUnavailableError),
)

ENDPOINTS: Final = (LIST, SET, RESTART, LOGIN)
