"""MCP servers in V1: their status, a new start, and the login."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import Payload, Record


class V1McpStatus(Record):
    status: Literal["connected", "disabled", "failed", "needs_auth"]
    error: str | UnsetType = UNSET
    """Set where it failed."""


class V1McpLogin(Record):
    """`oauth_state` is what the address sends back, by which a client knows its login."""

    authorization_url: str
    oauth_state: str


class V1McpLogout(Record):
    success: Literal[True]


class CompleteV1McpLogin(Payload):
    code: str


_SERVER: Final = "/mcp/{name}"

STATUS: Final = declare("GET", "/mcp", "mcp.status", dict[str, V1McpStatus])
CONNECT: Final = declare("POST", f"{_SERVER}/connect", "mcp.connect", bool)
LOGIN: Final = declare("POST", f"{_SERVER}/auth", "mcp.auth.start", V1McpLogin)
COMPLETE: Final = declare(
    "POST",
    f"{_SERVER}/auth/callback",
    "mcp.auth.callback",
    V1McpStatus,
    body=CompleteV1McpLogin,
)
LOGOUT: Final = declare("DELETE", f"{_SERVER}/auth", "mcp.auth.remove", V1McpLogout)

ENDPOINTS: Final = (STATUS, CONNECT, LOGIN, COMPLETE, LOGOUT)
