"""Calls of MCP tools, as tools of ours: the registry asks for permission, a server runs."""

from perdure.core.mcp import result
from perdure.core.mcp.tool_list import McpTool
from perdure.core.mcp.tool_names import McpToolName
from perdure.llm.request import ToolDefinition
from perdure.location.mcp.server import RunningServer
from perdure.location.mcp.servers import McpServers
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.tools.api.schema_tool import SchemaTool, SchemaToolResult
from perdure.tools.api.tool import ToolCallContext, ToolFailure


class OfferedTool(Value):
    name: McpToolName
    tool: McpTool

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(self.name.offered, self.tool.description, self.tool.schema)


class McpCaller:
    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    def make_tool(self, name: McpToolName, tool: McpTool) -> SchemaTool:
        async def execute(input: JsonObject, context: ToolCallContext) -> SchemaToolResult:
            return await self.call(name, input, context)

        return SchemaTool(
            name=name.offered,
            description=tool.description,
            schema=tool.schema,
            execute=execute,
            action=name.action,
        )

    async def call(
        self, name: McpToolName, input: JsonObject, context: ToolCallContext
    ) -> SchemaToolResult:
        """Call the tool once its server is connected. Raises ToolFailure."""
        answer = await self.require_server(name.server).call(name.tool, input, context)
        read = result.read_result(answer)
        if read.failed:
            raise ToolFailure(read.failure)
        return SchemaToolResult(structured=read.structured, content=read.content)

    def require_server(self, name: str) -> RunningServer:
        """The server if it runs. Raises ToolFailure."""
        server = self._servers.get(name)
        if server is None:
            raise ToolFailure(f"The MCP server {name} is not configured here any more.")
        return server
