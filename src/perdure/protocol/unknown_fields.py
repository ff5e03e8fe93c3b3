"""Finds the fields of a request that its type does not have.

The decoder ignores them, and a client would believe that they count. What a type leaves open, such
as metadata, may hold any names.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, cast

from msgspec import inspect

from perdure.schema.codec import JsonObject, JsonValue

NAMES_MAX: Final = 20
_CHARS_MAX: Final = 100


def describe(kind: type, value: JsonValue) -> str:
    """What is wrong with `value`, which can be decoded as `kind`; empty if it has no such field."""
    found = list(islice(_walk(_shape(kind), value, ""), NAMES_MAX + 1))
    if not found:
        return ""
    named = ", ".join(name[:_CHARS_MAX] for name in found[:NAMES_MAX])
    more = " and more" if len(found) > NAMES_MAX else ""
    return f"Unknown fields: {named}{more}"


def _walk(shape: inspect.Type, value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _walk_object(shape, cast("JsonObject", value), path)
    elif isinstance(value, list) and (item := _item_of(shape)) is not None:
        for number, inner in enumerate(cast("list[JsonValue]", value)):
            yield from _walk(item, inner, f"{path}{number}.")


def _walk_object(shape: inspect.Type, value: JsonObject, path: str) -> Iterator[str]:
    struct = _struct_of(shape, value)
    if struct is None:
        return
    fields = {field.encode_name: field.type for field in struct.fields}
    for name, inner in value.items():
        if name in fields:
            yield from _walk(fields[name], inner, f"{path}{name}.")
        elif name != struct.tag_field:
            yield f"{path}{name}"


def _struct_of(shape: inspect.Type, value: JsonObject) -> inspect.StructType | None:
    """The record that the value was decoded as; None if its fields are free."""
    match shape:
        case inspect.StructType():
            return shape
        case inspect.UnionType(types=members):
            structs = [each for each in members if isinstance(each, inspect.StructType)]
            if len(structs) == 1:
                return structs[0]
            tagged = (each for each in structs if each.tag_field is not None)
            return next((it for it in tagged if value.get(it.tag_field or "") == it.tag), None)
        case _:
            return None


def _item_of(shape: inspect.Type) -> inspect.Type | None:
    match shape:
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return item
        case inspect.UnionType(types=members):
            return next((item for each in members if (item := _item_of(each)) is not None), None)
        case _:
            return None


@lru_cache(maxsize=256)
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)
