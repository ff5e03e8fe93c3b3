"""The walk of one prompt in ARCHITECTURE.md names modules, functions and methods that exist."""

import ast
import re
from collections.abc import Sequence
from typing import Final

import pytest

from tests.tidy import source_tree
from tests.tidy.source_tree import PACKAGE, ROOT

HEADING: Final = "The walk of one prompt"
MODULES_MAX: Final = 60
DOTTED: Final = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_every_name_of_the_walk_exists() -> None:
    names = dict.fromkeys(DOTTED.findall(section(HEADING)))
    assert names
    assert [name for name in names if not exists(name) and not is_event(name)] == []


def test_the_walk_passes_few_modules() -> None:
    names = dict.fromkeys(DOTTED.findall(section(HEADING)))
    modules = {module for name in names if (module := module_of(name)) is not None}
    assert 30 < len(modules) <= MODULES_MAX


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("core.session.inbox", True),
        ("core.session.inbox.admit", True),
        ("inbox.admit", True),
        ("store.log.event_store.EventStore.append", True),
        ("event_store.EventStore", True),
        ("core.limits", True),
        ("core.session.inbox.lose", False),
        ("core.session.outbox", False),
        ("event_store.EventStore.forget", False),
        ("event_store.EventStore.append.job", False),
        ("outbox.admit", False),
    ],
)
def test_a_name_is_looked_up_as_module_class_and_method(name: str, *, found: bool) -> None:
    assert exists(name) is found


def test_a_durable_event_is_no_name_of_the_code() -> None:
    assert is_event("prompt.admitted")
    assert not is_event("prompt.lost")


def section(heading: str) -> str:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert found is not None, f"ARCHITECTURE.md has no section {heading!r}"
    return found[1]


def exists(name: str) -> bool:
    """Whether a dotted name is a package, a module, or something that a module defines.

    It is given from the layer on, or from the module on.
    """
    parts = name.removeprefix("perdure.").split(".")
    if (PACKAGE / parts[0]).is_dir():
        return _is_package(parts) or any(
            _defines("/".join(parts[:end]) + ".py", parts[end:]) for end in range(1, len(parts) + 1)
        )
    named = [each for each in source_tree.modules() if each.path.stem == parts[0]]
    return any(_defines(each.name, parts[1:]) for each in named)


def module_of(name: str) -> str | None:
    """The path of the module that a name of the walk is in; None for a durable event."""
    parts = name.split(".")
    paths = ("/".join(parts[:end]) + ".py" for end in range(len(parts), 0, -1))
    return next((path for path in paths if (PACKAGE / path).is_file()), None)


def is_event(name: str) -> bool:
    manifest = source_tree.text_of(PACKAGE / "schema" / "manifest.py")
    return f'.{name}"' in manifest


def _is_package(parts: Sequence[str]) -> bool:
    return PACKAGE.joinpath(*parts, "__init__.py").exists()


def _defines(module: str, path: Sequence[str]) -> bool:
    """Whether a module exists and defines a name, or a class with a method or field."""
    found = [each for each in source_tree.modules() if each.name == module]
    if not found or len(path) > 2:
        return False
    within: ast.Module | ast.ClassDef = found[0].tree
    for name in path:
        if name not in _names(within):
            return False
        inner = [n for n in within.body if isinstance(n, Definition) and n.name == name]
        within = inner[0] if inner and isinstance(inner[0], ast.ClassDef) else ast.Module([], [])
    return True


def _names(node: ast.Module | ast.ClassDef) -> set[str]:
    names: set[str] = set()
    for each in node.body:
        if isinstance(each, Definition):
            names.add(each.name)
        elif isinstance(each, ast.AnnAssign):
            names.add(ast.unparse(each.target))
        elif isinstance(each, ast.Assign):
            names |= {ast.unparse(target) for target in each.targets}
    return names
