"""Input schemas of tools as OpenAI takes them: one plain object at the top."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.llm.protocols.shared.tool_schema import flattened
from perdure.schema.codec import JsonObject, JsonValue

PATH: JsonObject = {"type": "string"}
COUNT: JsonObject = {"type": "integer"}


def test_a_plain_object_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"anyOf": [PATH, {"type": "null"}]}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert flattened(schema) == schema


@pytest.mark.parametrize("combinator", ["anyOf", "oneOf"])
def test_alternatives_become_one_object(combinator: str) -> None:
    one = {"type": "object", "properties": {"a": PATH, "b": PATH}, "required": ["a", "b"]}
    two = {"type": "object", "properties": {"a": PATH, "b": COUNT}, "required": ["a"]}
    assert flattened({combinator: [one, {"type": "null"}, two], "description": "d"}) == {
        "type": "object",
        "description": "d",
        "properties": {"a": PATH, "b": {"anyOf": [PATH, COUNT]}},
        "required": ["a"],
    }


def test_all_of_requires_what_any_part_requires() -> None:
    parts = [{"properties": {"a": PATH}, "required": ["a"]}, {"properties": {"b": COUNT}}]
    assert flattened({"allOf": parts}) == {
        "type": "object",
        "properties": {"a": PATH, "b": COUNT},
        "required": ["a"],
    }


def test_a_reference_at_the_top_is_followed_and_its_definitions_stay() -> None:
    definitions = {"Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}}}
    assert flattened({"$ref": "#/$defs/Node", "$defs": definitions}) == {
        "type": "object",
        "$defs": definitions,
        "properties": {"next": {"$ref": "#/$defs/Node"}},
    }


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert flattened(schema)["properties"] == {}


KEYS = st.sampled_from(["type", "anyOf", "oneOf", "allOf", "properties", "required", "$ref", "a"])
SCHEMAS: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.sampled_from(["object", "a", "#/properties/a", "#"]) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, SCHEMAS, max_size=5))
def test_any_object_gives_one_plain_object(schema: JsonObject) -> None:
    made = flattened(schema)
    assert made["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & made.keys()
    assert {*made.get("required", ())} <= made["properties"].keys()


def test_references_that_lead_back_in_many_ways_come_to_an_end() -> None:
    back = [{"$ref": f"#/$defs/{name}"} for name in "abcd"]
    defs: JsonObject = {
        name: {"properties": {name: PATH}, "anyOf": back, "allOf": back} for name in "abcd"
    }
    found = flattened({"$defs": defs, "anyOf": back, "properties": {"own": COUNT}})
    assert set(found["properties"]) == {"own", *"abcd"}
