"""The wire form of each declared error, derived from sample instances.

`fields()` of an error returns its wire fields. The class has no schema, so a sample is constructed
from the types of its constructor, with and without optional arguments.
"""

import inspect
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Final, Literal, cast, get_args, get_origin, get_type_hints

from perdure.openapi.shapes import Choice, Field, OneOf, Record, Scalar, Shape
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.errors import DomainError

_STRING: Final = Scalar("string")
_BY_TYPE: Final[dict[type, Shape]] = {str: _STRING, int: Scalar("integer")}


def failure_records(kinds: Iterable[type[DomainError]]) -> dict[str, Record]:
    """Tag -> the record of its wire form. Errors with the same tag share a record."""
    found: dict[str, list[Record]] = {}
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        found.setdefault(kind.tag, []).append(_record(kind))
    return {tag: _joined(tag, records) for tag, records in sorted(found.items())}


def _record(kind: type[DomainError]) -> Record:
    full, least = _sample(kind, optional=True).wire(), _sample(kind, optional=False).wire()
    fields = (
        Field(name, _shape(name, value), required=name in least) for name, value in full.items()
    )
    return Record(kind.tag, tuple(fields))


def _joined(tag: str, records: list[Record]) -> Record:
    names = dict.fromkeys(field.wire for record in records for field in record.fields)
    members: list[Field] = []
    for name in names:
        same = [field for record in records for field in record.fields if field.wire == name]
        shapes = tuple(dict.fromkeys(field.shape for field in same))
        everywhere = len(same) == len(records) and all(field.required for field in same)
        shape = shapes[0] if len(shapes) == 1 else OneOf(shapes)
        members.append(Field(name, shape, required=everywhere))
    return Record(tag, tuple(members))


def _shape(name: str, value: JsonValue) -> Shape:
    return Choice((value,)) if name == "_tag" else _BY_TYPE[type(value)]


def _sample(kind: type[DomainError], *, optional: bool) -> DomainError:
    hints = get_type_hints(kind.__init__)
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    positional: list[JsonValue] = []
    named: JsonObject = {}
    for parameter in parameters:
        value = _value(hints[parameter.name], optional=optional)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = value
        else:
            positional.append(value)
    return cast("JsonValue", kind)(*positional, **named)


def _value(hint: JsonValue, *, optional: bool) -> JsonValue:
    if isinstance(hint, UnionType):
        options = get_args(hint)
        if not optional and NoneType in options:
            return None
        return _value(options[0], optional=optional)
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is tuple:
        return ()
    # A NewType is made from its base type.
    base = getattr(hint, "__supertype__", hint)
    return base()
