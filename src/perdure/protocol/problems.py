"""Explains why a request does not match its type.

The decoder stops at the first fault and has its own wording, so it only decides *that* a value is
wrong. This module then walks the type and the value together and reports every fault: a reason, and
on the next line the path to it. It does not decide validity.

Invariant: a text for the wire is never longer than `TEXT_CHARS_MAX` and the note about the rest.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, Literal, get_args, get_origin, get_type_hints

from msgspec import inspect

from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue, Payload

TEXT_CHARS_MAX: Final = 1_024
PROBLEMS_MAX: Final = 100
SAFE_INTEGER_MAX: Final = 2**53 - 1

Path = tuple[str | int, ...]

_GOT: Final = ", got "
_CONFIDENTIAL: Final = (codec.ConfidentialRecord, codec.ConfidentialPayload)
_PREFIX: Final = lazy_pattern(r"\^([A-Za-z]+_?)")


def explain(kind: type, value: JsonValue) -> str:
    """All faults of `value` as a `kind`; empty if there are none."""
    return join_problems(walk(_shape(kind), value, ()))


def join_problems(problems: Iterable[str]) -> str:
    """Problems as one text of limited length."""
    whole = "\n".join(islice(problems, PROBLEMS_MAX))
    if len(whole) <= TEXT_CHARS_MAX:
        return whole
    return f"{whole[:TEXT_CHARS_MAX]}... ({len(whole) - TEXT_CHARS_MAX} more chars)"


def _without_value(fault: str) -> str:
    """The fault without what was given, which may be a secret."""
    reason, newline, path = fault.partition("\n")
    return f"{reason.partition(_GOT)[0]}{newline}{path}"


def expected(what: str, value: JsonValue, path: Path = ()) -> str:
    return _at(f"Expected {what}{_GOT}{_shown(value)}", path)


def walk(shape: inspect.Type, value: JsonValue, path: Path) -> Iterator[str]:
    """The faults of `value` and of everything inside it, in the order of the type."""
    faults = _walk(shape, value, path)
    if isinstance(shape, inspect.StructType) and issubclass(shape.cls, _CONFIDENTIAL):
        return map(_without_value, faults)
    return faults


def _walk(shape: inspect.Type, value: JsonValue, path: Path) -> Iterator[str]:
    match shape:
        case inspect.UnionType(types=members):
            return _union(members, value, path)
        case _ if not _accepts(shape, value):
            return iter((expected(_name(shape), value, path),))
        case inspect.StructType(cls=cls):
            return _fields(cls, value, path)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return _items(item, _numbered(value), path)
        case inspect.DictType(value_type=item):
            return _items(item, value.items(), path)
        case inspect.StrType(pattern=str(pattern)):
            return _pattern(pattern, value, path)
        case inspect.IntType():
            return _integer(shape, value, path)
        case _:
            return iter(())


def _fields(cls: type, value: JsonObject, path: Path) -> Iterator[str]:
    for name, shape, required in _declared(cls):
        if name in value:
            yield from walk(shape, value[name], (*path, name))
        elif required:
            yield _at("Missing key", (*path, name))


def _items(
    shape: inspect.Type, items: Iterable[tuple[str | int, JsonValue]], path: Path
) -> Iterator[str]:
    for key, element in items:
        yield from walk(shape, element, (*path, key))


def _numbered(values: list[JsonValue]) -> Iterator[tuple[int, JsonValue]]:
    return enumerate(values)


def _union(members: tuple[inspect.Type, ...], value: JsonValue, path: Path) -> Iterator[str]:
    """The faults of the union member that fits the value best."""
    chosen = next((member for member in members if _accepts(member, value)), None)
    if chosen is not None:
        return walk(chosen, value, path)
    # A string is reported against the literal strings of the union, if there are any.
    choices = [
        member
        for member in members
        if isinstance(member, inspect.LiteralType) and isinstance(value, str)
    ]
    names = " | ".join(_name(member) for member in choices or members)
    return iter((expected(names, value, path),))


def _pattern(pattern: str, value: str, path: Path) -> Iterator[str]:
    prefix = _PREFIX.match(pattern)
    if prefix is not None and not value.startswith(prefix[1]):
        yield expected(f'a string starting with "{prefix[1]}"', value, path)
    elif re.search(pattern, value) is None:
        yield expected(f"a string matching {pattern}", value, path)


def _integer(shape: inspect.IntType, value: float, path: Path) -> Iterator[str]:
    if not is_safe_integer(value):
        yield expected("an integer", value, path)
        return
    if shape.gt is not None and value <= shape.gt:
        yield expected(f"a value greater than {shape.gt}", value, path)
    if shape.ge is not None and value < shape.ge:
        yield expected(f"a value greater than or equal to {shape.ge}", value, path)
    if shape.lt is not None and value >= shape.lt:
        yield expected(f"a value less than {shape.lt}", value, path)
    if shape.le is not None and value > shape.le:
        yield expected(f"a value less than or equal to {shape.le}", value, path)


def is_safe_integer(value: float) -> bool:
    """Whether every client can represent it exactly."""
    return abs(value) <= SAFE_INTEGER_MAX and value == int(value)


def _accepts(shape: inspect.Type, value: JsonValue) -> bool:
    """Whether the JSON kind of `value` fits `shape`, ignoring its content."""
    match shape:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.ListType() | inspect.VarTupleType():
            return isinstance(value, list)
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType() | inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case inspect.NoneType():
            return value is None
        case inspect.LiteralType(values=values):
            return value in values
        case _:
            return True


def _name(shape: inspect.Type) -> str:
    match shape:
        case inspect.StructType(cls=cls):
            return "object" if issubclass(cls, Payload) else cls.__name__
        case inspect.LiteralType(values=values):
            return " | ".join(_shown(value) for value in values)
        case inspect.IntType() | inspect.FloatType():
            return "number"
        case _:
            return _PLAIN_NAMES.get(type(shape), "a value")


_PLAIN_NAMES: Final[dict[type[inspect.Type], str]] = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.ListType: "array",
    inspect.VarTupleType: "array",
    inspect.DictType: "object",
}


def _at(reason: str, path: Path) -> str:
    if not path:
        return reason
    return f"{reason}\n  at {''.join(f'[{codec.encode(part).decode()}]' for part in path)}"


def _shown(value: JsonValue) -> str:
    """The value as JavaScript would print it."""
    if not isinstance(value, float):
        try:
            return codec.encode(value).decode()
        except OverflowError:  # an integer beyond 64 bits, or a value that holds one
            return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)


@lru_cache(maxsize=256)
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


@lru_cache(maxsize=256)
def _declared(cls: type) -> tuple[tuple[str, inspect.Type, bool], ...]:
    """A record's fields by wire name, with literals in the order they were declared."""
    shape = _shape(cls)
    assert isinstance(shape, inspect.StructType)
    hints = get_type_hints(cls)
    return tuple(
        (field.encode_name, _in_order(field.type, hints[field.name]), field.required)
        for field in shape.fields
    )


def _in_order(shape: inspect.Type, hint: JsonValue) -> inspect.Type:
    """`shape` with literal values in declared order, because msgspec sorts them."""
    if isinstance(shape, inspect.UnionType):
        return inspect.UnionType(tuple(_in_order(member, hint) for member in shape.types))
    if isinstance(shape, inspect.LiteralType):
        written = tuple(_literals(hint))
        return inspect.LiteralType(written) if set(written) == set(shape.values) else shape
    return shape


def _literals(hint: JsonValue) -> Iterator[str | int]:
    if get_origin(hint) is Literal:
        yield from get_args(hint)
    else:
        for member in get_args(hint):
            yield from _literals(member)
