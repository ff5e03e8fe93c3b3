"""Folders are small enough to read, and every package says what belongs in it."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tidy import source_tree
from tests.tidy.source_tree import PACKAGE, ROOT, Module

MODULES_PER_FOLDER_MAX: Final = 20
PUBLIC_PACKAGES: Final = frozenset(
    {
        "__init__.py",
        "client/__init__.py",
        "core/limits/__init__.py",
        "embedded/__init__.py",
        "plugin/__init__.py",
        "ports/__init__.py",
        "testing/__init__.py",
    }
)
"""Packages whose names are imported from the package itself."""


def test_no_folder_has_too_many_modules() -> None:
    folders = Counter(
        path.parent
        for path in source_tree.committed_files()
        if path.suffix == ".py" and path.name != "__init__.py" and _is_counted(path)
    )
    found = [
        f"{folder.relative_to(ROOT)}: {count} modules"
        for folder, count in sorted(folders.items())
        if count > MODULES_PER_FOLDER_MAX
    ]
    assert found == []


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {module.path.parent for module in source_tree.modules()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_package_says_what_belongs_in_it() -> None:
    assert [each.name for each in packages() if not ast.get_docstring(each.tree)] == []


def test_only_public_packages_import_anything() -> None:
    found = [
        module.at(node)
        for module in packages()
        if module.name not in PUBLIC_PACKAGES
        for node in imports(module.tree)
    ]
    assert found == []


def test_every_public_package_exists() -> None:
    assert PUBLIC_PACKAGES - {module.name for module in packages()} == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""A package."""\n', False),
        ('"""A package."""\nfrom perdure import core\n', True),
        ('"""A package."""\nimport os\n', True),
        ('"""A package."""\n__version__ = "1"\n', False),
    ],
)
def test_the_search_for_imports_sees_every_form(source: str, *, found: bool) -> None:
    assert bool([*imports(ast.parse(source))]) is found


def packages() -> list[Module]:
    return [module for module in source_tree.modules() if module.path.name == "__init__.py"]


def imports(tree: ast.Module) -> Iterator[ast.stmt]:
    return (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))


def _is_counted(path: Path) -> bool:
    return path.is_relative_to(PACKAGE) or path.is_relative_to(ROOT / "tests")
