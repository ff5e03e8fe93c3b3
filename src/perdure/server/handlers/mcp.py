"""MCP servers of a Location."""

from typing import Final

from perdure.protocol.settings import mcp
from perdure.schema.models.integration import Attempt
from perdure.schema.settings.mcp import McpServerInfo
from perdure.server.call import Call, Handlers


async def list_servers(call: Call[None, None]) -> tuple[McpServerInfo, ...]:
    return await call.runtime.mcp.list(call.location())


async def restart(call: Call[None, None]) -> McpServerInfo:
    return await call.runtime.mcp.restart(call.location(), call.params["name"])


async def login(call: Call[None, None]) -> Attempt:
    return await call.runtime.mcp.login(call.location(), call.params["name"])


async def logout(call: Call[None, None]) -> None:
    await call.runtime.mcp.logout(call.location(), call.params["name"])


HANDLERS: Final[Handlers] = {
    mcp.LIST.operation_id: list_servers,
    mcp.RESTART.operation_id: restart,
    mcp.LOGIN.operation_id: login,
    mcp.LOGOUT.operation_id: logout,
}
