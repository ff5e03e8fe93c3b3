"""Parses and decodes query strings.

Numbers follow JavaScript's `Number()`: surrounding blanks and exponents are allowed, the empty text
is zero, anything else is not a number. A repeated field is refused. Unknown names are ignored.
`location[directory]` is an ordinary name here.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
from msgspec import inspect

from perdure.lazy_pattern import lazy_pattern
from perdure.protocol import problems
from perdure.schema import codec
from perdure.schema.codec import JsonObject, Payload
from perdure.schema.errors import InvalidRequestError
from perdure.schema.value import Value

QueryT = TypeVar("QueryT", bound=Payload)
Fields = Mapping[str, list[str]]

_DECIMAL: Final = lazy_pattern(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_RADIX: Final = lazy_pattern(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+")
_INTEGER_DIGITS_MAX: Final = 400
_ESCAPE: Final = lazy_pattern(rb"%([0-9A-Fa-f]{2})")


def parse(query_string: bytes) -> dict[str, list[str]]:
    """Every field with its values in the order sent."""
    fields: dict[str, list[str]] = {}
    if not query_string:
        return fields
    for pair in query_string.split(b"&"):
        if pair:
            name, _, value = pair.replace(b"+", b" ").partition(b"=")
            fields.setdefault(unquote(name), []).append(unquote(value))
    return fields


def unquote(text: bytes) -> str:
    """Undo percent-encoding; invalid UTF-8 becomes the replacement character."""
    if b"%" in text:
        text = _ESCAPE.sub(lambda match: bytes((int(match[1], 16),)), text)
    return text.decode("utf-8", "replace")


def decode(kind: type[QueryT], fields: Fields) -> QueryT:
    """Decode a typed query. Raises InvalidRequestError that names every fault."""
    value, faults = _collect(_columns(kind), fields)
    try:
        query = codec.convert(kind, value)
    except msgspec.ValidationError as error:
        faults.append(problems.explain(kind, value) or str(error))
    else:
        if not faults:
            return query
    raise InvalidRequestError(problems.join_problems(faults), kind="Query")


def number(text: str) -> float:
    """The result of JavaScript's `Number(text)`; an `int` if that is exact."""
    text = text.strip()
    if not text:
        return 0
    if _DECIMAL.fullmatch(text):
        value = float(text)
    elif _RADIX.fullmatch(text) and len(text) <= _INTEGER_DIGITS_MAX:
        value = _to_float(int(text, 0))
    elif text in {"Infinity", "+Infinity", "-Infinity"}:
        value = float(text)
    else:
        return math.nan
    return int(value) if problems.is_safe_integer(value) else value


class _Column(Value):
    name: str
    numeric: bool


@lru_cache(maxsize=64)
def _columns(kind: type[Payload]) -> tuple[_Column, ...]:
    shape = inspect.type_info(kind)
    assert isinstance(shape, inspect.StructType)
    return tuple(_Column(field.encode_name, _is_numeric(field.type)) for field in shape.fields)


def _is_numeric(shape: inspect.Type) -> bool:
    members = shape.types if isinstance(shape, inspect.UnionType) else (shape,)
    return any(isinstance(member, inspect.IntType | inspect.FloatType) for member in members)


def _collect(columns: tuple[_Column, ...], fields: Fields) -> tuple[JsonObject, list[str]]:
    """The JSON value of the fields, and the problems of invalid ones."""
    value: JsonObject = {}
    faults: list[str] = []
    for column in columns:
        given = fields.get(column.name)
        if given is None:
            continue
        if len(given) > 1:
            faults.append(problems.expected("string | undefined", given, (column.name,)))
        elif not column.numeric:
            value[column.name] = given[0]
        elif isinstance(amount := number(given[0]), int):
            value[column.name] = amount
        else:
            faults.append(problems.expected("an integer", amount, (column.name,)))
    return value, faults


def _to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
