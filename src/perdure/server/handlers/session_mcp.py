"""The MCP servers of one Session."""

from typing import Final

from perdure.protocol.session import mcp
from perdure.protocol.session.mcp import SetMcpServers
from perdure.schema.models.integration import Attempt
from perdure.schema.settings.mcp import McpServerInfo
from perdure.server.call import Call, Handlers


async def list_servers(call: Call[None, None]) -> tuple[McpServerInfo, ...]:
    return await call.runtime.mcp.list(call.session_location, session=call.session_id)


async def set_servers(call: Call[None, SetMcpServers]) -> tuple[McpServerInfo, ...]:
    call.runtime.session_servers.replace(call.session_id, call.body.servers)
    return await call.runtime.mcp.list(call.session_location, session=call.session_id)


async def restart(call: Call[None, None]) -> McpServerInfo:
    name = call.params["name"]
    return await call.runtime.mcp.restart(call.session_location, name, session=call.session_id)


async def login(call: Call[None, None]) -> Attempt:
    name = call.params["name"]
    return await call.runtime.mcp.login(call.session_location, name, session=call.session_id)


HANDLERS: Final[Handlers] = {
    mcp.LIST.operation_id: list_servers,
    mcp.SET.operation_id: set_servers,
    mcp.RESTART.operation_id: restart,
    mcp.LOGIN.operation_id: login,
}
