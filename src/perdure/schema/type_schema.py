"""The JSON Schema of a Python type as one plain object, and the check of values against the type.

msgspec handles scalars, containers, Literal, enums, dataclasses, structs, TypedDict and unions. A
type that holds a pydantic model, or pydantic's Field, is described and checked by pydantic. A
program that uses pydantic has imported it; this module never does.
"""

import dataclasses
import sys
import typing
from collections.abc import Callable
from typing import Final, cast

import msgspec

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

TypeForm = JsonValue
"""A type as it is written in a signature: Python has no type for those."""

_PYDANTIC_MARK: Final = "__pydantic_core_schema__"
"""Every model and every dataclass of pydantic has this attribute."""


class TypeSchemaError(ValueError):
    """The type has no schema that can be written as one plain object."""


class DescribedType(Value):
    schema: JsonObject
    convert: Callable[[object], object]
    """A JSON value as a value of the type; raises ValueError for one that does not fit."""


def describe(annotation: TypeForm) -> DescribedType:
    """Describe a type. Raises TypeSchemaError."""
    described = describe_with_pydantic(annotation)
    if described is not None:
        return described
    try:
        schema = msgspec.json.schema(annotation)
    except (TypeError, NameError) as error:
        raise TypeSchemaError(f"no JSON Schema for {annotation}: {error}") from error
    return DescribedType(
        _untitled(written_out(schema)), lambda value: msgspec.convert(value, type=annotation)
    )


def describe_with_pydantic(annotation: TypeForm) -> DescribedType | None:
    """Describe a type of pydantic; None for others. Raises TypeSchemaError."""
    pydantic: JsonValue = sys.modules.get("pydantic")
    if pydantic is None or not _needs_pydantic(annotation, pydantic):
        return None
    try:
        adapter = pydantic.TypeAdapter(annotation)
    except pydantic.errors.PydanticUserError as error:
        raise TypeSchemaError(f"cannot be described by pydantic: {error}") from error
    return DescribedType(_untitled(written_out(adapter.json_schema())), adapter.validate_python)


def written_out(schema: JsonObject) -> JsonObject:
    """`schema` as one plain object, with references replaced by what they refer to."""
    definitions: JsonObject = schema.get("$defs", {})
    rest = {name: value for name, value in schema.items() if name != "$defs"}
    return codec.decode_any(codec.encode(_inlined(rest, definitions, within=())))


def _needs_pydantic(
    annotation: TypeForm, pydantic: JsonValue, *, within: tuple[type, ...] = ()
) -> bool:
    """Whether `annotation` holds a model, a dataclass or a Field of pydantic, at any depth."""
    if isinstance(annotation, pydantic.fields.FieldInfo):
        return True
    parts = typing.get_args(annotation)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        # A dataclass that contains itself is looked at once.
        parts = () if annotation in within else _field_types(annotation)
        within = (*within, annotation)
    marked = isinstance(annotation, type) and hasattr(annotation, _PYDANTIC_MARK)
    return marked or any(_needs_pydantic(part, pydantic, within=within) for part in parts)


def _field_types(kind: type) -> tuple[TypeForm, ...]:
    try:
        return tuple(typing.get_type_hints(kind, include_extras=True).values())
    except NameError:
        # msgspec reports the unknown name when it describes the type.
        return ()


def _untitled(node: JsonValue) -> JsonValue:
    """`node` without titles, which repeat class names; a property named `title` stays."""
    if isinstance(node, list):
        return [_untitled(item) for item in cast("list[JsonValue]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("JsonObject", node)
    return {
        key: _untitled(value)
        for key, value in members.items()
        if key != "title" or not isinstance(value, str)
    }


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
            raise TypeSchemaError(f"{name} contains itself")
        target: JsonObject = {
            key: value for key, value in definitions[name].items() if key != "title"
        }
        return _inlined(target, definitions, within=(*within, name))
    return {key: _inlined(value, definitions, within=within) for key, value in members.items()}
