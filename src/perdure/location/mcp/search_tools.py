"""`mcp_search` and `mcp_call`: how a model finds and calls tools that it is not offered one by one.

`mcp_call` asks for the permission of the tool that it calls, so that rules hold for it too.
"""

from collections.abc import Callable, Mapping
from typing import Final

from perdure.core import limits
from perdure.core.mcp import tool_names, tool_search
from perdure.core.text import jsonc
from perdure.llm.request import ToolDefinition
from perdure.location.mcp.call import McpCaller, OfferedTool
from perdure.schema.codec import JsonObject, JsonValue
from perdure.tools.api.schema_tool import SchemaTool, SchemaToolResult
from perdure.tools.api.tool import ToolCallContext, ToolFailure

_SEARCH_DESCRIPTION: Final = """\
Find tools of MCP servers by words: what you want to do, or parts of a name. Returns the names, \
descriptions and input schemas of the tools that fit best. Call one with `mcp_call`."""
_SEARCH_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Words, such as: create issue github"},
        "limit": {
            "type": "integer",
            "description": f"At most so many tools; {limits.MCP_SEARCH_RESULTS_DEFAULT} if absent.",
        },
    },
    "required": ["query"],
}
_CALL_DESCRIPTION: Final = """\
Call a tool of an MCP server by the name that `mcp_search` gave."""
_CALL_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The name of the tool."},
        "arguments": {"type": "object", "description": "Its input, as its schema says."},
    },
    "required": ["name", "arguments"],
}

DEFINITIONS: Final[Mapping[str, ToolDefinition]] = {
    tool_names.CALL: ToolDefinition(tool_names.CALL, _CALL_DESCRIPTION, _CALL_SCHEMA),
    tool_names.SEARCH: ToolDefinition(tool_names.SEARCH, _SEARCH_DESCRIPTION, _SEARCH_SCHEMA),
}
"""What is offered instead of the tools. It never changes."""


def make_search_tools(
    caller: McpCaller, tools: Callable[[], Mapping[str, OfferedTool]]
) -> tuple[SchemaTool, SchemaTool]:
    def find(input: JsonObject) -> OfferedTool:
        name = input.get("name")
        found = tools().get(name) if isinstance(name, str) else None
        if found is None:
            raise ToolFailure("There is no such tool of an MCP server. Look for it: mcp_search")
        return found

    async def search(input: JsonObject, context: ToolCallContext) -> SchemaToolResult:
        query = input.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ToolFailure("Say in `query` what to look for.")
        known = tools()
        names = tool_search.find_tools(
            {name: offered.tool for name, offered in known.items()},
            query[: limits.MCP_SEARCH_CHARS_MAX],
            _limit(input.get("limit")),
        )
        found: list[JsonValue] = [
            {
                "name": name,
                "description": known[name].tool.description,
                "schema": known[name].tool.schema,
            }
            for name in names
        ]
        return SchemaToolResult(structured={"tools": found, "searched": len(known)})

    async def call(input: JsonObject, context: ToolCallContext) -> SchemaToolResult:
        arguments: JsonValue = input.get("arguments", {})
        if not jsonc.is_object(arguments):
            raise ToolFailure("`arguments` must be an object.")
        return await caller.call(find(input).name, arguments, context)

    return (
        SchemaTool(
            name=tool_names.SEARCH,
            description=_SEARCH_DESCRIPTION,
            schema=_SEARCH_SCHEMA,
            execute=search,
            effect="pure",
        ),
        SchemaTool(
            name=tool_names.CALL,
            description=_CALL_DESCRIPTION,
            schema=_CALL_SCHEMA,
            execute=call,
            asks=lambda given: find(given).name.action,
        ),
    )


def _limit(value: JsonValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return limits.MCP_SEARCH_RESULTS_DEFAULT
    return max(1, min(value, limits.MCP_SEARCH_RESULTS_MAX))
