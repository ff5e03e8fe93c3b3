"""The JSON Schema of a tool's input: one plain object that every provider accepts.

It comes from the type that validates the input, with references replaced by what they refer to and
without titles, which repeat class names.
"""

from functools import cache

import msgspec

from perdure.schema.codec import JsonObject, Record
from perdure.schema.type_schema import TypeSchemaError, written_out


@cache
def input_schema(kind: type[Record]) -> JsonObject:
    """The schema of `kind`. All callers share it: do not change it."""
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise TypeSchemaError(f"no JSON Schema for {kind.__name__}: {error}") from error
    plain = written_out(schema)
    # The class is described for its reader; what the model reads is the tool's description.
    plain.pop("description", None)
    return plain


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
