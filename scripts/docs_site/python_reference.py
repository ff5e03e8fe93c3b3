"""The reference page of the package `perdure`: its functions, classes, errors and types."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Final, cast, get_args, is_typeddict

import perdure
from scripts.docs_site import records
from scripts.docs_site.records import code, table_row

_INTRODUCTION = """# Python

The names of `perdure`. Each is imported when it is first used, so `import perdure` costs nothing.
The groups of operations (`host.sessions`, `client.files`, ...) have one method for each of the
[HTTP operations](reference/http.md), under the name that stands there.
"""
WIDTH: Final = 80
_HEADINGS: Final = ("Functions", "Classes with methods", "Errors", "Records", "Types")


def write() -> str:
    kinds: dict[str, list[str]] = {heading: [] for heading in _HEADINGS}
    for name in sorted(perdure.__all__):
        value = getattr(perdure, name)
        if not isinstance(value, ModuleType | str):
            kinds[_heading(value)].extend(_describe(name, value))
    texts = (f"## {heading}\n\n" + "\n".join(lines) for heading, lines in kinds.items())
    return "\n".join((_INTRODUCTION, *texts))


def _heading(value: object) -> str:
    if not isinstance(value, type):
        return "Functions" if inspect.isroutine(value) else "Types"
    kind = cast("type[object]", value)
    if Exception in kind.__mro__:
        return "Errors"
    has_methods = bool(_methods(kind)) or not records.has_fields(kind)
    return "Classes with methods" if has_methods else "Records"


def _describe(name: str, value: object) -> Iterator[str]:
    yield f"### `{name}`\n"
    if isinstance(value, type):
        yield from _describe_class(cast("type[object]", value))
    elif inspect.isroutine(value):
        yield f"```python\n{name}{_signature(value)}\n```\n"
        yield f"{inspect.getdoc(value) or ''}\n"
        yield from _options(value)
    elif (kept := getattr(value, "__supertype__", None)) is not None:
        yield f"A `{kept.__name__}` that is an id of its own type for type checkers.\n"
    else:
        yield f"```python\n{_type_text(value)}\n```\n"


def _describe_class(kind: type[object]) -> Iterator[str]:
    if text := records.docstring(kind):
        yield f"{text}\n"
    if records.has_fields(kind):
        rows = [
            table_row(code(field.attribute), code(field.type), field.doc)
            for field in records.list_fields(kind)
            if not field.attribute.startswith("_")
        ]
        if rows:
            yield "\n".join((table_row("field", "type", ""), "|---|---|---|", *rows, ""))
    if issubclass(kind, Exception):
        return
    for name, value in _methods(kind).items():
        shown = name if isinstance(value, property) else f"{name}{_signature(value)}"
        yield f"#### `{kind.__name__}.{name}`\n"
        yield f"```python\n{shown}\n```\n"
        yield f"{inspect.getdoc(value) or ''}\n"


def _options(function: Callable[..., object]) -> Iterator[str]:
    """The keyword options of a function that takes them as a typed dictionary."""
    for value in inspect.get_annotations(function).values():
        for kind in get_args(value):
            if is_typeddict(kind):
                yield table_row("option", "type", "")
                yield "|---|---|---|"
                for name, text, doc in records.list_written(kind):
                    yield table_row(code(name), code(text), doc)
                yield ""


def _methods(kind: type[object]) -> dict[str, Callable[..., object] | property]:
    """The public methods and properties that are written for a class, by name, in their order."""
    return {
        name: value
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("perdure")
        for name, value in vars(base).items()
        if (inspect.isfunction(value) or isinstance(value, property)) and not name.startswith("_")
    }


def _signature(value: Callable[..., object]) -> str:
    """The parameters and the result of a function, as its source has them."""
    node = records.function_node(value)
    arguments = node.args
    arguments.args = [one for one in arguments.args if one.arg != "self"]
    result = f" -> {records.plain(node.returns)}" if node.returns is not None else ""
    text = f"({', '.join(map(_spaced, _split(ast.unparse(arguments))))}){result}"
    if len(text) <= WIDTH:
        return text
    lines = [f"    {_spaced(one)},\n" for one in _split(ast.unparse(arguments))]
    return f"(\n{''.join(lines)}){result}"


def _spaced(argument: str) -> str:
    """An argument with spaces around the mark of its default."""
    return re.sub(r"(: [^=]+)=", r"\1 = ", argument, count=1)


def _split(arguments: str) -> list[str]:
    """A text at its commas outside brackets."""
    parts, depth, start = list[str](), 0, 0
    for index, character in enumerate(arguments):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(arguments[start:index].strip())
            start = index + 1
    return [*parts, arguments[start:].strip()]


def _type_text(value: object) -> str:
    """A type alias, with the plain names of its parts."""
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", inspect.formatannotation(value))
