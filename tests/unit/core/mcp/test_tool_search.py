"""Search among MCP tools: the best first, the same answer each time."""

from perdure.core.mcp import tool_search
from perdure.core.mcp.tool_list import McpTool


def tool(name: str, description: str = "") -> McpTool:
    return McpTool(name=name, description=description, schema={"type": "object"})


TOOLS = {
    f"hub_{one.name}": one
    for one in (
        tool("createIssue", "Open a new issue in a repository."),
        tool("list_issues", "List the issues of a repository."),
        tool("create_branch", "Create a branch from another one."),
        tool("weather", "Tell the weather of a city."),
    )
}


def test_words_of_the_name_count_more_than_those_of_the_description() -> None:
    assert tool_search.find_tools(TOOLS, "create issue", 10)[0] == "hub_createIssue"
    assert tool_search.find_tools(TOOLS, "branch", 10) == ["hub_create_branch"]
    assert list(tool_search.find_tools(TOOLS, "repository", 10)) == [
        "hub_createIssue",
        "hub_list_issues",
    ]


def test_what_no_tool_has_finds_nothing_and_the_limit_holds() -> None:
    assert list(tool_search.find_tools(TOOLS, "submarine", 10)) == []
    assert list(tool_search.find_tools(TOOLS, "", 10)) == []
    assert len(tool_search.find_tools(TOOLS, "hub", 2)) == 2
    assert list(tool_search.find_tools({}, "x", 2)) == []
