"""The base of all messages of the protocol: its names are in camel case, as `sessionId`."""

from typing import cast

from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value


class WireValue(Value, omit_defaults=True, rename="camel"):
    """A message of the Agent Client Protocol, or a part of one. Unknown fields are ignored."""


def object_of(value: JsonValue) -> JsonObject:
    """The value if it is an object; an empty one in place of anything else."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def list_of(value: JsonValue) -> list[JsonValue]:
    """The value if it is a list, else a list of it alone."""
    return cast("list[JsonValue]", value) if isinstance(value, list) else [value]
