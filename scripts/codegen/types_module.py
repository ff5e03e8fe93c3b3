"""Emits the wire values as TypedDicts, and the declared failures with a guard for each."""

import re
from collections.abc import Iterable, Iterator

from perdure.openapi.contract import Contract
from perdure.openapi.shapes import Field, OneOf, Record, Ref, Shape, walk
from scripts.codegen import python_source
from scripts.codegen.python_source import spelled, union

_TYPING = {"typing": ["Literal", "NotRequired", "TypedDict", "TypeGuard"]}


def types_module(contract: Contract) -> str:
    return python_source.module(
        "Every value of the wire, as a plain dict.",
        "".join(_definitions(contract)),
        eager={**_TYPING, "perdure.schema.codec": ["JsonValue"]},
        lazy={},
    )


def failures_module(contract: Contract) -> str:
    return python_source.module(
        "Declared failures as wire values, and a guard for each.",
        "".join(_record(record, set()) + _guard(tag) for tag, record in contract.failures.items()),
        eager={**_TYPING, "perdure.client.errors": ["has_tag"]},
        lazy={},
    )


def _definitions(contract: Contract) -> Iterator[str]:
    """Sort records after those that they refer to, so that optional keys can be evaluated."""
    defined: set[str] = set()
    begun: set[str] = set()

    def define(name: str) -> Iterator[str]:
        if name in begun:
            return
        begun.add(name)
        record = contract.records.get(name)
        shapes = [contract.unions[name]] if record is None else [f.shape for f in record.fields]
        for needed in _named(shapes):
            yield from define(needed)
        yield _union(name, shapes[0]) if record is None else _record(record, begun - defined)
        defined.add(name)

    for name in (*contract.records, *contract.unions):
        yield from define(name)


def _named(shapes: Iterable[Shape]) -> list[str]:
    found: list[Shape] = []
    for shape in shapes:
        walk(shape, found.append)
    return [shape.name for shape in found if isinstance(shape, Ref)]


def _record(record: Record, undefined: set[str]) -> str:
    lines = [f'    """{record.summary}"""', ""] if record.summary else []
    lines += [f"    {_member(field, undefined)}" for field in record.fields]
    if not record.fields:
        lines = lines[:1] or ["    pass"]
    body = "\n".join(lines)
    return f"\n\nclass {record.name}(TypedDict):\n{body}\n"


def _member(field: Field, undefined: set[str]) -> str:
    if not field.wire.isidentifier():
        raise ValueError(f"{field.wire!r} cannot be a member of a class")
    annotation = spelled(field.shape)
    if undefined.intersection(_named([field.shape])):
        # A record that contains records of its own type.
        annotation = f'"{annotation}"'
    return f"{field.wire}: {annotation if field.required else f'NotRequired[{annotation}]'}"


def _union(name: str, shape: Shape) -> str:
    options = shape.options if isinstance(shape, OneOf) else (shape,)
    return f"\n\n{union(name, [spelled(option) for option in options])}\n"


def _guard(tag: str) -> str:
    stem = re.sub(r"(?<!^)([A-Z])", r"_\1", tag.removesuffix("Error")).lower()
    head = python_source.bracketed(
        f"def is_{stem}(", ["value: object"], f") -> TypeGuard[{tag}]:", indent=0
    )
    return f'\n\n{head}\n    return has_tag(value, "{tag}")\n'
