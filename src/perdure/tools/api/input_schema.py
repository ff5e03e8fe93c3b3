"""The JSON Schema of a tool's input: one plain object that every provider accepts.

It comes from the type that validates the input, with references replaced by what they refer to and
without titles, which repeat class names.
"""

from functools import cache
from typing import cast

import msgspec

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Record


class InputSchemaError(ValueError):
    """The type has no schema that can be written as one plain object."""


@cache
def input_schema(kind: type[Record]) -> JsonObject:
    """The schema of `kind`. All callers share it: do not change it."""
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise InputSchemaError(f"no JSON Schema for {kind.__name__}: {error}") from error
    plain = written_out(schema)
    # The class is described for its reader; what the model reads is the tool's description.
    plain.pop("description", None)
    return plain


def written_out(schema: JsonObject) -> JsonObject:
    """`schema` as one plain object, with references replaced by what they refer to."""
    definitions: JsonObject = schema.get("$defs", {})
    rest = {name: value for name, value in schema.items() if name != "$defs"}
    return codec.decode_any(codec.encode(_inlined(rest, definitions, within=())))


def without_nulls(kind: type[Record], input: JsonObject) -> JsonObject:
    """`input` without the optional fields that are null, which models often send for absent."""
    absent = [name for name, value in input.items() if value is None]
    if not absent:
        return input
    optional = _optional_names(kind)
    return {
        name: value for name, value in input.items() if value is not None or name not in optional
    }


@cache
def _optional_names(kind: type[Record]) -> frozenset[str]:
    fields = msgspec.structs.fields(kind)
    return frozenset(field.encode_name for field in fields if not field.required)


def _inlined(node: JsonValue, definitions: JsonObject, *, within: tuple[str, ...]) -> JsonValue:
    if isinstance(node, list):
        items = cast("list[JsonValue]", node)
        return [_inlined(item, definitions, within=within) for item in items]
    if not isinstance(node, dict):
        return node
    members = cast("JsonObject", node)
    reference = members.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in within:
            raise InputSchemaError(f"{name} contains itself")
        target: JsonObject = {
            key: value for key, value in definitions[name].items() if key != "title"
        }
        return _inlined(target, definitions, within=(*within, name))
    return {key: _inlined(value, definitions, within=within) for key, value in members.items()}
