"""The layers that decide perform no input and no output, and never wait."""

import ast
from typing import Final

from tests.requirements import requirement
from tests.tidy import source_tree

PURE_LAYERS: Final = ("schema/", "protocol/", "core/")
IMPURE_IMPORTS: Final = frozenset(
    {
        "apsw",
        "asyncio",
        "asyncpg",
        "concurrent",
        "http",
        "httptools",
        "httpx2",
        "logging",
        "multiprocessing",
        "os",
        "pathlib.Path",
        "random",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib.request",
        "uuid",
    }
)
IMPURE_CALLS: Final = frozenset({"open", "input", "print", "exec", "eval"})


def pure_modules() -> list[source_tree.Module]:
    return [module for module in source_tree.modules() if module.name.startswith(PURE_LAYERS)]


@requirement("S144")
def test_values_contract_and_decisions_have_no_async_functions() -> None:
    found = [
        module.at(node)
        for module in pure_modules()
        for node in module.nodes
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    assert found == []


@requirement("S144")
def test_values_contract_and_decisions_import_nothing_that_touches_the_world() -> None:
    found = [
        f"{module.at(node)} imports {name}"
        for module in pure_modules()
        for node in module.nodes
        for name in source_tree.imported_names(node)
        if name in IMPURE_IMPORTS or name.partition(".")[0] in IMPURE_IMPORTS
    ]
    assert found == []


def test_values_contract_and_decisions_call_nothing_that_touches_the_world() -> None:
    found = [
        f"{module.at(node)} calls {name}"
        for module in pure_modules()
        for node in module.nodes
        if isinstance(node, ast.Call)
        for name in [node.func.id if isinstance(node.func, ast.Name) else ""]
        if name in IMPURE_CALLS
    ]
    assert found == []
