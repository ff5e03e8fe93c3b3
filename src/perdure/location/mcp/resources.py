"""Resources of MCP servers: the tool `mcp_read_resource`, and attachments `mcp://server/uri`.

The tool asks for the permission `mcp_read_resource` with the server and the address as resource.
"""

import asyncio
from typing import Final

from perdure.core import limits
from perdure.core.mcp import result, tool_names
from perdure.core.text import jsonc
from perdure.llm.request import ToolDefinition
from perdure.location.mcp.servers import McpServers
from perdure.ports.mcp import McpConnection, McpError
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ToolContent
from perdure.tools.api.schema_tool import SchemaTool, SchemaToolResult
from perdure.tools.api.tool import ToolCallContext, ToolFailure

SCHEME: Final = "mcp://"
_DESCRIPTION: Final = """\
Read a resource of an MCP server, such as a file or a record that one of its tools named. Without \
`uri` it lists the resources of the server."""
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "server": {"type": "string", "description": "The name of the MCP server."},
        "uri": {"type": "string", "description": "The address of the resource."},
    },
    "required": ["server"],
}
DEFINITION: Final = ToolDefinition(tool_names.READ_RESOURCE, _DESCRIPTION, _SCHEMA)


def make_resource_tool(servers: McpServers) -> SchemaTool:
    async def execute(input: JsonObject, context: ToolCallContext) -> SchemaToolResult:
        server, uri = input.get("server"), input.get("uri")
        if not isinstance(server, str) or not (uri is None or isinstance(uri, str)):
            raise ToolFailure("Say in `server` which MCP server, and in `uri` which resource.")
        if not uri:
            return SchemaToolResult(structured={"resources": await _list(servers, server)})
        return SchemaToolResult(content=await read_resource(servers, server, uri))

    return SchemaTool(
        name=tool_names.READ_RESOURCE,
        description=_DESCRIPTION,
        schema=_SCHEMA,
        execute=execute,
        effect="pure",
    )


async def read_attached(servers: McpServers, address: str) -> tuple[ToolContent, ...]:
    """The resource that an attachment `mcp://server/uri` names. Raises ToolFailure."""
    server, _, uri = address.removeprefix(SCHEME).partition("/")
    if not server or not uri:
        raise ToolFailure("the address of a resource is written mcp://server/uri")
    return await read_resource(servers, server, uri)


async def read_resource(servers: McpServers, server: str, uri: str) -> tuple[ToolContent, ...]:
    """The content of a resource. Raises ToolFailure."""
    connection, seconds = await _connect(servers, server)
    try:
        async with asyncio.timeout(seconds):
            answer = await connection.read_resource(uri)
    except (McpError, TimeoutError) as error:
        raise ToolFailure(f"The MCP server {server} did not give {uri}: {error}") from error
    return result.read_resource(answer)


async def _list(servers: McpServers, server: str) -> list[JsonValue]:
    connection, seconds = await _connect(servers, server)
    try:
        async with asyncio.timeout(seconds):
            found = await connection.list("resources")
    except (McpError, TimeoutError) as error:
        raise ToolFailure(f"The MCP server {server} did not list: {error}") from error
    shown = (one for one in found if jsonc.is_object(one))
    return [
        {key: one[key] for key in ("uri", "name", "description", "mimeType") if key in one}
        for one in list(shown)[: limits.MCP_RESOURCES_LISTED_MAX]
    ]


async def _connect(servers: McpServers, name: str) -> tuple[McpConnection, float]:
    running = servers.get(name)
    if running is None:
        raise ToolFailure(f"There is no MCP server {name} here.")
    connection = await running.wait_connected()
    if "resources" not in connection.lists:
        raise ToolFailure(f"The MCP server {name} has no resources.")
    return connection, running.server.request_seconds
