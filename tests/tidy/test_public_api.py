"""The public API is what `perdure` names: the same for programs, type checkers and completion."""

import ast
import sys
from typing import Final

import pytest

import perdure
from perdure.schema import live_event
from perdure.schema.errors import DeclaredError, DomainError, PerdureError
from perdure.schema.manifest import BY_SHAPE
from tests.tidy.source_tree import PACKAGE
from tests.tidy.test_imports import loaded_by

FUNCTIONS: Final = ("open", "open_blocking", "connect", "connect_blocking", "tool", "resume_events")


def imported_for_type_checkers() -> set[str]:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_see_the_names_that_programs_can_use() -> None:
    assert list(perdure.__all__) == sorted(set(perdure.__all__))
    assert imported_for_type_checkers() == set(perdure.__all__)
    assert set(perdure.__all__) <= set(dir(perdure))


@pytest.mark.parametrize("name", perdure.__all__)
def test_a_public_name_is_found_where_it_is_defined(name: str) -> None:
    found = getattr(perdure, name)
    assert getattr(perdure, name) is found
    home = getattr(found, "__module__", None)
    if isinstance(found, type):
        assert getattr(sys.modules[str(home)], found.__name__) is found
        assert found.__name__ == name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_says_what_it_does(name: str) -> None:
    assert getattr(perdure, name).__doc__


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'perdure' has no attribute 'nothing'"):
        getattr(perdure, "nothing".lower())


def test_every_declared_failure_is_public_and_a_perdure_error() -> None:
    for kind in DomainError.__subclasses__():
        if kind.__module__ == DomainError.__module__:
            assert getattr(perdure, kind.__name__) is kind
            assert issubclass(kind, DeclaredError)
    assert issubclass(perdure.ClientError, PerdureError)


def test_every_kind_of_event_is_in_the_module_of_events() -> None:
    kinds = {*BY_SHAPE, *live_event.LIVE_TYPES}
    assert {kind.__name__ for kind in kinds} <= set(perdure.events.__all__)
    for name in perdure.events.__all__:
        assert hasattr(perdure.events, name)


def test_connecting_loads_no_engine() -> None:
    loaded = loaded_by(
        "import perdure\nperdure.connect, perdure.connect_blocking, perdure.ModelRef"
    )
    assert loaded & {"perdure.embedded", "perdure.runtime", "perdure.store", "apsw"} == set()


def test_an_embedded_host_loads_no_http_library() -> None:
    assert "httpx2" not in loaded_by("import perdure\nperdure.open")
