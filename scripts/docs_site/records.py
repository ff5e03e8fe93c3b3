"""Reads the docstring of a class from its source, and its fields with types and docstrings."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final, TypeGuard

import msgspec

_UNSET: Final = (" | UnsetType", "UnsetType | ")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record, as it is written in JSON and in Python."""

    name: str
    """The name in JSON."""
    attribute: str
    """The name in Python."""
    type: str
    required: bool
    doc: str


def docstring(kind: type) -> str:
    """The docstring of a class itself; nothing if it only inherits one."""
    written = kind.__dict__.get("__doc__")
    return inspect.cleandoc(written) if isinstance(written, str) else ""


def list_fields(kind: type[msgspec.Struct]) -> Iterator[Field]:
    """The fields of a record, those of its bases first."""
    written = _written_fields(kind)
    names = kind.__struct_fields__
    defaults = (msgspec.NODEFAULT,) * (len(names) - len(kind.__struct_defaults__))
    defaults += kind.__struct_defaults__
    for name, encoded, default in zip(names, kind.__struct_encode_fields__, defaults, strict=True):
        annotation, doc = written[name]
        yield Field(encoded, name, annotation, default is msgspec.NODEFAULT, doc)


def list_written(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and docstring of each annotated name of a class."""
    for name, (annotation, doc) in _written_fields(kind).items():
        yield name, annotation, doc


def has_fields(kind: object) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def table_row(*cells: str) -> str:
    """One row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def plain(annotation: ast.expr) -> str:
    """An annotation without bounds, and without what only says that a field may be left out."""
    text = ast.unparse(_Unannotated().visit(annotation))
    for part in _UNSET:
        text = text.replace(part, "")
    return text.strip("'") if text.count("'") == 2 and text[0] == text[-1] == "'" else text


class _Unannotated(ast.NodeTransformer):
    """Replaces `Annotated[type, bounds]` with the type."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name, inside = node.value, node.slice
        if isinstance(name, ast.Name) and name.id == "Annotated" and isinstance(inside, ast.Tuple):
            return inside.elts[0]
        return self.generic_visit(node)


def _written_fields(kind: type) -> dict[str, tuple[str, str]]:
    """Field name -> annotation and docstring, from the sources of a class and its bases."""
    found: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("perdure"):
            found.update(_fields_of(base))
    return found


def _fields_of(kind: type) -> Iterator[tuple[str, tuple[str, str]]]:
    node = _class_node(kind)
    if node is None:
        return
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            following = node.body[index + 1] if index + 1 < len(node.body) else None
            yield statement.target.id, (plain(statement.annotation), _text_of(following))


def _text_of(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return " ".join(inspect.cleandoc(value).split()) if isinstance(value, str) else ""
    return ""


def _class_node(kind: type) -> ast.ClassDef | None:
    module = inspect.getmodule(kind)
    if not isinstance(module, ModuleType) or module.__file__ is None:
        return None
    found = (node for node in ast.walk(_tree(module.__file__)) if isinstance(node, ast.ClassDef))
    return next((node for node in found if node.name == kind.__name__), None)


def function_node(function: Callable[..., object]) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The definition of a function in its source; the last one where it has overloads."""
    plain = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(plain))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text(encoding="utf-8"))
