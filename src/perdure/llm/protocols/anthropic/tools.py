"""Anthropic Messages: tool definitions, with a schema that the provider accepts.

The provider requires an object at the top without alternatives beside it. One tool with another
schema would fail every request.
"""

from typing import Final

from perdure.llm.encoding import shared
from perdure.llm.request import ToolDefinition
from perdure.schema.codec import JsonObject

_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")


def definition(tool: ToolDefinition) -> JsonObject:
    schema = _object_schema(tool.input_schema)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _object_schema(schema: JsonObject) -> JsonObject:
    kept = {name: value for name, value in schema.items() if name not in _ALTERNATIVES}
    properties = _properties(schema)
    for name in _ALTERNATIVES:
        for alternative in schema.get(name) or ():
            if shared.is_object(alternative):
                properties = _properties(alternative) | properties
    return kept | {"type": "object"} | ({"properties": properties} if properties else {})


def _properties(schema: JsonObject) -> JsonObject:
    found = schema.get("properties")
    return found if shared.is_object(found) else {}
