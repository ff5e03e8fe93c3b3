"""Lists of MCP tools: the same text for the same content, bounded, whatever a server sends."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.mcp import tool_list
from perdure.core.mcp.tool_list import McpToolList
from perdure.schema.codec import JsonObject, JsonValue
from perdure.tools.api.schema_tool import find_fault


def read(tools: list[JsonValue], instructions: str = "") -> tool_list.ReadList:
    return tool_list.read_list(tools, instructions, fault=find_fault)


def tool(name: str, **fields: JsonValue) -> JsonObject:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def test_tools_are_sorted_so_that_the_order_of_a_server_does_not_matter() -> None:
    one = read([tool("b"), tool("a")])
    two = read([tool("a"), tool("b")])
    assert [each.name for each in one.list.tools] == ["a", "b"]
    assert one.list.digest == two.list.digest
    assert one.list.digest != read([tool("a")]).list.digest
    assert one.list.digest != read([tool("a", description="x"), tool("b")]).list.digest
    assert one.list.digest != read([tool("a"), tool("b")], "instructions").list.digest


def test_a_list_is_read_back_as_it_was_kept() -> None:
    found = read([tool("a", description="Ä"), tool("b")], "Be kind.").list
    again = tool_list.decode(found.encode())
    assert again == found
    assert again.digest == found.digest
    with pytest.raises(msgspec.DecodeError):
        tool_list.decode(b'{"tools": 3}')


@pytest.mark.parametrize(
    ("given_schema", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
        (
            {"properties": {"a": {"type": "string"}}, "required": ["a"], "$schema": "x"},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "$schema": "x",
            },
        ),
    ],
)
def test_a_schema_becomes_an_object_with_properties(
    given_schema: JsonValue, expected: JsonObject
) -> None:
    entry: JsonObject = {"name": "a"}
    if given_schema is not None:
        entry["inputSchema"] = given_schema
    (found,) = read([entry]).list.tools
    assert found.schema == expected


@pytest.mark.parametrize(
    "entry",
    [
        None,
        3,
        [],
        {},
        {"name": ""},
        {"name": "  "},
        {"name": 3},
        {"name": "\ud800"},
        tool("a", inputSchema=[]),
        tool("a", inputSchema="x"),
        tool("a", inputSchema={"type": "array"}),
        tool("a", inputSchema={"type": ["object"]}),
        tool("a", inputSchema={"type": "object", "x": "\ud800"}),
        tool("a", inputSchema={"type": "object", "x": "y" * limits.TOOL_SCHEMA_BYTES_MAX}),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_what_cannot_be_offered_is_left_out_alone_and_reported(entry: JsonValue) -> None:
    found = read([entry, tool("good")])
    assert [each.name for each in found.list.tools] == ["good"]
    assert len(found.problems) == 1


def test_everything_is_bounded() -> None:
    most = limits.MCP_TOOLS_MAX
    many = read([tool(f"t{number}") for number in range(most + 5)])
    assert len(many.list.tools) == most
    assert many.problems == (f"5 tools beyond the first {most}",)
    long = read([tool("a", description="x" * 1_000_000)], "y" * 1_000_000).list
    assert len(long.tools[0].description) < limits.MCP_DESCRIPTION_CHARS_MAX + 100
    assert len(long.instructions) < limits.MCP_INSTRUCTIONS_CHARS_MAX + 100
    heavy = [tool(f"t{number}", description="x" * 16_000) for number in range(600)]
    assert len(read([*heavy]).list.encode()) <= limits.MCP_TOOLS_BYTES_MAX * 1.1
    bad = read([{"name": ""} for _ in range(500)])
    assert len(bad.problems) == limits.MCP_PROBLEMS_MAX + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(
    st.lists(
        json_values
        | st.fixed_dictionaries(
            {"name": st.text(max_size=5)},
            optional={"inputSchema": json_values, "description": json_values},
        ),
        max_size=5,
    )
)
def test_reading_never_fails_and_gives_what_can_be_kept(tools: list[JsonValue]) -> None:
    found = read(tools).list
    assert tool_list.decode(found.encode()) == found


def test_an_empty_list_has_a_digest() -> None:
    assert McpToolList().digest == read([]).list.digest
