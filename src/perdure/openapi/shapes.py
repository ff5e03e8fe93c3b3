"""Shapes: the JSON form of types, independent of a language.

Emitters write Shapes in their own language. Records and named unions are referred to by name and
kept in one table, so that each is written once.

Invariant: every name that a Shape refers to is in the table.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, assert_never

import msgspec
from msgspec import inspect

from perdure.openapi.names import Alias
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value

ScalarName = Literal["string", "integer", "number", "boolean", "null", "any"]


class Scalar(Value):
    name: ScalarName


class Choice(Value):
    """One of these strings or numbers."""

    values: tuple[str | int, ...]


class ListOf(Value):
    item: "Shape"


class MapOf(Value):
    value: "Shape"


class OneOf(Value):
    options: tuple["Shape", ...]


class Ref(Value):
    """A reference to the table entry of this name."""

    name: str


Shape = Scalar | Choice | ListOf | MapOf | OneOf | Ref


class Field(Value):
    """One member of an object, by its wire name."""

    wire: str
    shape: Shape
    required: bool


class Record(Value):
    """A JSON object with these members."""

    name: str
    fields: tuple[Field, ...]
    summary: str = ""


class ShapeTable:
    """Converts types to Shapes, and collects all records and named unions."""

    def __init__(self, aliases: Sequence[Alias]) -> None:
        self.records: dict[str, Record] = {}
        self.aliases: dict[str, Shape] = {}
        self._name_of: dict[Shape, str] = {}
        self._class_of: dict[str, type] = {}
        for alias in aliases:
            shape = self.shape_of(alias.type)
            self.aliases[alias.name] = shape
            self._name_of[shape] = alias.name

    def shape_of(self, kind: JsonValue) -> Shape:
        """The Shape of a Python type when encoded."""
        return self._shape(inspect.type_info(kind))

    def fields_of(self, kind: type[msgspec.Struct]) -> tuple[Field, ...]:
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        return self._fields(info)

    def add(self, record: Record) -> Ref:
        known = self.records.setdefault(record.name, record)
        if known != record:
            raise ValueError(f"two different records are named {record.name}")
        return Ref(record.name)

    def name(self, name: str, shape: Shape) -> Ref:
        self.aliases[name] = shape
        return Ref(name)

    def _shape(self, info: inspect.Type) -> Shape:
        shape = self._bare(info)
        named = self._name_of.get(shape)
        return shape if named is None else Ref(named)

    def _bare(self, info: inspect.Type) -> Shape:
        match info:
            case inspect.LiteralType():
                return Choice(tuple(value for value in info.values if value is not None))
            case inspect.CollectionType():
                return ListOf(self._shape(info.item_type))
            case inspect.DictType():
                return MapOf(self._shape(info.value_type))
            case inspect.UnionType():
                return OneOf(tuple(self._shape(option) for option in info.types))
            case inspect.StructType():
                return self._record(info)
            case inspect.Metadata():
                return self._bare(info.type)
            case _:
                return Scalar(_SCALARS[type(info)])

    def _record(self, info: inspect.StructType) -> Ref:
        name = info.cls.__name__
        if self._class_of.setdefault(name, info.cls) is not info.cls:
            raise ValueError(f"two different records are named {name}")
        if name not in self.records:
            # Registered before its members, because a record may contain itself.
            self.records[name] = Record(name, ())
            self.records[name] = Record(name, self._fields(info), _summary(info.cls))
        return Ref(name)

    def _fields(self, info: inspect.StructType) -> tuple[Field, ...]:
        tag: tuple[Field, ...] = ()
        if info.tag_field is not None and info.tag is not None:
            tag = (Field(info.tag_field, Choice((info.tag,)), required=True),)
        found = (
            Field(field.encode_name, self._shape(field.type), required=field.required)
            for field in info.fields
        )
        return (*tag, *found)


_SCALARS: Final[Mapping[type[inspect.Type], ScalarName]] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.AnyType: "any",
}


def walk(shape: Shape, visit: Callable[[Shape], None]) -> None:
    """Call `visit` for a shape and everything inside it; references are not followed."""
    visit(shape)
    match shape:
        case ListOf(inner) | MapOf(inner):
            walk(inner, visit)
        case OneOf(options):
            for option in options:
                walk(option, visit)
        case Scalar() | Choice() | Ref():
            pass
        case _:
            assert_never(shape)


def _summary(kind: type[msgspec.Struct]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
