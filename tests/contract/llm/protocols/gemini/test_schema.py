"""Tool schemas from anywhere, in the part of OpenAPI that Gemini takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.llm.protocols.gemini import schema as gemini_schema
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.gemini.validator import schema_faults


def member(schema: JsonValue, **root: JsonValue) -> JsonObject:
    """What becomes of `schema` as the one property of an input."""
    whole: JsonObject = {"type": "object", "properties": {"x": schema}} | root
    projected = gemini_schema.parameters(whole)
    assert projected is not None
    assert [*schema_faults(projected)] == []
    return projected["properties"]["x"]


FORMS: list[tuple[JsonValue, JsonObject]] = [
    ({"type": "string"}, {"type": "string"}),
    ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    (
        {"type": ["string", "integer"], "description": "d"},
        {"description": "d", "anyOf": [{"type": "string"}, {"type": "integer"}]},
    ),
    ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ({"const": "a"}, {"type": "string", "enum": ["a"]}),
    (
        {"type": "integer", "enum": [1, 2], "description": "How many."},
        {"type": "integer", "description": "How many. One of: 1, 2"},
    ),
    ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
    (
        {"type": "array", "items": [{"type": "integer"}, {}], "minItems": 1},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    ),
    ({"type": "string", "format": "uri", "pattern": "^x"}, {"type": "string"}),
    (
        {"type": "integer", "format": "int64", "minimum": 0, "exclusiveMaximum": 9},
        {"type": "integer", "format": "int64", "minimum": 0},
    ),
    (
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "string", "nullable": True},
    ),
    (
        {"oneOf": [{"type": "string"}, {"type": "boolean"}], "default": "x"},
        {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
    ),
    (
        {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "required": ["a"],
        },
    ),
    (
        {"type": "object", "properties": {"a": {}}, "required": ["a", "gone"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    ),
    ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
    (True, {"type": "string"}),
    ({"type": "null"}, {"type": "string", "nullable": True}),
    ({"$ref": "https://example.org/schema"}, {"type": "string"}),
]


@pytest.mark.parametrize(("schema", "expected"), FORMS)
def test_each_schema_has_a_form_that_is_taken(schema: JsonValue, expected: JsonObject) -> None:
    assert member(schema) == expected


def test_references_are_put_in_place_and_end_where_they_meet_themselves() -> None:
    tree: JsonObject = {
        "type": "object",
        "description": "A tree.",
        "properties": {"left": {"$ref": "#/$defs/a~1b"}, "name": {"type": "string"}},
    }
    found = member({"$ref": "#/$defs/a~1b"}, **{"$defs": {"a/b": tree}})
    assert found == {
        "type": "object",
        "description": "A tree.",
        "properties": {"left": {"type": "object"}, "name": {"type": "string"}},
    }


def test_a_small_schema_that_grows_without_end_is_bounded() -> None:
    wide = {f"p{n}": {"$ref": f"#/$defs/d{n}"} for n in range(12)}
    nested: JsonObject = {f"d{n}": {"type": "object", "properties": wide} for n in range(12)}
    found = member({"$ref": "#/$defs/d0"}, **{"$defs": nested})
    assert codec.encode(found).count(b'"type"') < 2 * gemini_schema.NODES_MAX


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_input_has_no_schema(schema: JsonObject) -> None:
    assert gemini_schema.parameters(schema) is None


KEYS = (
    "type enum const items properties required anyOf oneOf allOf $ref $defs"
    " format minimum maxLength description nullable a"
)
keys = st.sampled_from(KEYS.split())
leaves = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "string", "object", "array", "null", "#", "#/$defs/a", "int32"]
)
junk: st.SearchStrategy[JsonValue] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(keys, junk, max_size=6))
def test_no_schema_whatever_makes_one_that_is_refused(schema: JsonObject) -> None:
    projected = gemini_schema.parameters(schema)
    assert projected is None or [*schema_faults(projected)] == []
