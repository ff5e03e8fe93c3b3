"""Names of MCP tools: as OpenCode makes them, within what providers take, and never ambiguous."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.mcp import tool_names
from perdure.core.mcp.tool_names import McpToolName
from perdure.core.text import wildcard

OFFERED = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@pytest.mark.parametrize(
    ("server", "tool", "action", "offered"),
    [
        ("git", "git_status", "git_git_status", "git_git_status"),
        ("my server", "a.b/c", "my_server_a_b_c", "my_server_a_b_c"),
        ("ä", "ö", "___", "mcp____"),
        ("1password", "get", "1password_get", "mcp_1password_get"),
        ("a-b", "c-d", "a-b_c-d", "a-b_c-d"),
    ],
)
def test_both_names_are_joined_and_cleaned(
    server: str, tool: str, action: str, offered: str
) -> None:
    name = McpToolName(server, tool)
    assert (name.action, name.offered) == (action, offered)


def test_a_long_name_is_cut_and_stays_different() -> None:
    one, two = (McpToolName("server", "x" * 100 + end) for end in "ab")
    assert len(one.offered) == len(two.offered) == 64
    assert one.offered != two.offered
    assert one.offered == McpToolName("server", "x" * 100 + "a").offered
    assert len(one.action) == 108


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_can_be_offered_and_is_matched_by_the_rule_of_its_server(
    server: str, tool: str
) -> None:
    name = McpToolName(server, tool)
    assert OFFERED.fullmatch(name.offered) is not None
    assert wildcard.matches(tool_names.rule_pattern(server), name.action)


@given(st.lists(st.tuples(st.text("a_.", min_size=1), st.text("a_.", min_size=1)), unique=True))
def test_a_name_means_one_tool(pairs: list[tuple[str, str]]) -> None:
    tools = [McpToolName(*pair) for pair in pairs]
    named = tool_names.name_tools(tools, taken=frozenset())
    assert len(named.tools) + len(named.refused) == len(tools)
    assert len({tool.action for tool in named.tools.values()}) == len(named.tools)
    assert not {tool.action for tool in named.refused} & {
        tool.action for tool in named.tools.values()
    }
    assert list(named.tools) == sorted(named.tools)


@pytest.mark.parametrize(
    ("tools", "taken"),
    [
        ([("s", "a.b"), ("s", "a_b")], ()),
        ([("git", "x_status"), ("git_x", "status")], ()),
        ([("bash", "output")], ("bash_output",)),
        ([("mcp", "search")], ()),
        ([("mcp", "call")], ()),
    ],
)
def test_names_that_collide_are_refused_all_of_them(
    tools: list[tuple[str, str]], taken: tuple[str, ...]
) -> None:
    found = [McpToolName(*pair) for pair in tools]
    named = tool_names.name_tools(found, taken=frozenset(taken))
    assert named.tools == {}
    assert list(named.refused) == found
