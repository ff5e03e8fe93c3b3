"""Rules that a linter does not know, each with the few packages or modules that may differ.

An exception is added to a table here together with its reason, or the code is changed.
"""

import ast
import re
import tokenize
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Final

import pytest

from tests.tidy import source_tree
from tests.tidy.source_tree import Module

DOCSTRING_LINES_MAX: Final = 12

CATCHES_ALL: Final[Mapping[str, str]] = {
    "acp/wire/": "a defect in a handler becomes an error answer, not a lost connection",
    "embedded/": "a defect of the application breaks one answer, and is its cause",
    "mcp_server/server.py": "a defect in a call answers that call, and the others go on",
    "location/context/": "a source of a plugin that raises is left out, and reported",
    "runtime/compaction/": "a failing summary model must not end the turn",
    "runtime/coordination/": "a defect ends one drain, not the process",
    "runtime/plugins/": "a plugin that raises is left out, and reported",
    "runtime/turn/": "what a tool raises becomes a failed call, and a lost fact a failed step",
    "server/app.py": "a defect in a handler becomes a 500, not a lost connection",
}
STARTS_TASKS: Final[Mapping[str, str]] = {
    "cli/runs/": "of the views of a run, the first that sees its end ends the others",
    "client/": "a blocking scope stays open between two calls, until its loop is closed",
    "host/process/": "a child must be ended even if its caller is cancelled",
    "runtime/coordination/": "a drain outlives the request that woke it",
    "runtime/tasks.py": "a shielded region must outlive its cancelled caller",
    "server/http/": "a request is owned by its listener, which awaits it on closing",
}
IMPORTS_LATE: Final[Mapping[str, str]] = {
    "__init__.py": "a name of the public API is imported when it is first used",
    "acp/server.py": "the first request of an editor is answered before the rest is loaded",
    "client/generated/": "a group of the client is loaded when it is first used",
    "client/wire.py": "the HTTP library is loaded by a client that connects",
    "cli/": "a command loads only what it runs, so that --version stays quick",
    "core/files/exact_edit.py": "lines are compared only for an edit",
    "embedded/host.py": "tools of the program are loaded with the engine",
    "net/host_name.py": "the tables of names that are not ASCII are loaded with the first of them",
    "llm/": "a provider's wire protocol is loaded when a route first needs it",
    "location/": "the bundled catalog and tools are loaded with the first Location",
    "tools/": "optional packages are loaded when their tool first runs",
    "host/": "drivers that only some uses need are loaded on first use",
    "store/": "only the configured database driver is loaded",
    "runtime/app/": "what only a running Session needs is loaded when the first one runs",
    "runtime/plugins/": "the metadata of packages is read only if one offers plugins",
    "schema/redaction.py": "its patterns take long to compile, and a good run needs none",
    "server/": "terminals and the contract's description are loaded on first use",
}
LOOKS_CAREFULLY: Final = tuple(
    f"location/{package}/" for package in ("agents", "config", "context", "project", "skills")
)
LOOKS_HASTILY: Final = {
    "location/skills/cache.py": "a copy that cannot be looked at is fetched again",
}
HASTY_LOOKS: Final = frozenset(
    {
        *(f"os.path.{name}" for name in ("exists", "lexists", "isfile", "isdir")),
        *("os.access", "glob.glob", "glob.iglob", "os.walk"),
    }
)
SUPPRESSION: Final = re.compile(r"type:\s*ignore|\bnoqa\b|pragma:\s*no cover|pyright:\s*ignore")


def test_only_named_packages_catch_every_exception() -> None:
    assert [each for each in broad_handlers() if not each.startswith(tuple(CATCHES_ALL))] == []


def test_only_named_packages_start_tasks_outside_a_group() -> None:
    assert [each for each in bare_tasks() if not each.startswith(tuple(STARTS_TASKS))] == []


def test_what_models_are_told_of_is_looked_at_with_cached_files() -> None:
    """Other ways of looking take a path that cannot be looked at for one that is absent."""
    assert hasty_looks() == []


def test_imports_inside_functions_have_a_reason() -> None:
    assert [each for each in late_imports() if not each.startswith(tuple(IMPORTS_LATE))] == []


def test_every_exception_to_a_rule_is_needed() -> None:
    for table, found in ((CATCHES_ALL, broad_handlers()), (STARTS_TASKS, bare_tasks())):
        assert [place for place in table if not any(each.startswith(place) for each in found)] == []


def test_no_checker_is_silenced() -> None:
    folders = [source_tree.ROOT / name for name in ("src", "tests", "scripts", "bench")]
    found = [
        f"{path.relative_to(source_tree.ROOT)}: {comment}"
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for comment in suppressions(source_tree.text_of(path))
    ]
    assert found == []


def test_a_module_opens_with_what_it_means() -> None:
    found = [
        f"{module.name}: {fault}"
        for module in source_tree.modules()
        for fault in [docstring_fault(module)]
        if fault
    ]
    assert found == []


def broad_handlers() -> list[str]:
    return [
        module.at(node)
        for module in source_tree.modules()
        for node in module.nodes
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not hands_on(node)
    ]


def bare_tasks() -> list[str]:
    return [
        module.at(node)
        for module in source_tree.modules()
        for node in module.nodes
        if starts_bare_task(node)
    ]


def hasty_looks() -> list[str]:
    return [
        f"{module.at(node)}: {ast.unparse(node)}"
        for module in source_tree.modules()
        if module.name.startswith(LOOKS_CAREFULLY) and module.name not in LOOKS_HASTILY
        for node in module.nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) in HASTY_LOOKS
    ]


def late_imports() -> list[str]:
    return [
        module.at(node)
        for module in source_tree.modules()
        for node in module.nodes
        if isinstance(node, ast.Import | ast.ImportFrom) and is_in_function(node, module)
    ]


def docstring_fault(module: Module) -> str | None:
    if not module.text.strip():
        return None if module.path.name == "__init__.py" else "is empty"
    docstring = ast.get_docstring(module.tree)
    if not docstring:
        return "has no docstring"
    lines = len(docstring.splitlines())
    return f"has a docstring of {lines} lines" if lines > DOCSTRING_LINES_MAX else None


def catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    named = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        isinstance(item, ast.Name) and item.id in {"Exception", "BaseException"} for item in named
    )


def hands_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler hides nothing: it raises again, or gives the failure to a waiting task."""
    if isinstance(handler.type, ast.Name) and handler.type.id == "Exception":
        return False
    last = handler.body[-1]
    raises = isinstance(last, ast.Raise) and last.exc is None
    delivers = any(
        isinstance(node, ast.Attribute) and node.attr == "set_exception"
        for node in ast.walk(handler)
    )
    return raises or delivers


def starts_bare_task(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="create_task", value=receiver)):
            source = ast.unparse(receiver)
            return source == "asyncio" or "loop" in source
        case ast.ImportFrom(module="asyncio", names=names):
            return any(alias.name == "create_task" for alias in names)
        case _:
            return False


def is_in_function(node: ast.stmt, module: Module) -> bool:
    spans = ((f.lineno, f.end_lineno or f.lineno) for f in source_tree.functions(module.nodes))
    return any(first <= node.lineno <= last for first, last in spans)


def suppressions(source: str) -> Iterator[str]:
    # What is nowhere in a file is in none of its comments.
    if not SUPPRESSION.search(source):
        return
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT and SUPPRESSION.search(token.string):
            yield f"line {token.start[0]}: {token.string}"


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("try: f()\nexcept Exception: pass", True),
        ("try: f()\nexcept: pass", True),
        ("try: f()\nexcept (OSError, BaseException): pass", True),
        ("try: f()\nexcept BaseException:\n  g()\n  raise", False),
        ("try: f()\nexcept BaseException as e: future.set_exception(e)", False),
        ("try: f()\nexcept OSError: pass", False),
    ],
)
def test_the_search_for_broad_handlers_sees_every_form(source: str, *, caught: bool) -> None:
    handlers = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ExceptHandler)]
    assert any(catches_all(item) and not hands_on(item) for item in handlers) is caught


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("asyncio.create_task(f())", True),
        ("asyncio.get_running_loop().create_task(f())", True),
        ("from asyncio import create_task", True),
        ("group.create_task(f())", False),
        ("self._tasks.create_task(f())", False),
    ],
)
def test_the_search_for_bare_tasks_sees_every_form(source: str, *, caught: bool) -> None:
    assert any(starts_bare_task(node) for node in ast.walk(ast.parse(source))) is caught


@pytest.mark.parametrize(
    ("source", "caught"),
    [
        ("def f():\n    import a", True),
        ("def f(): import a", True),
        ("class C:\n    async def f(self):\n        if x:\n            from a import b", True),
        ("import a\n\n\ndef f(): ...\n\n\nimport b", False),
        ("if TYPE_CHECKING:\n    from a import b", False),
    ],
)
def test_the_search_for_late_imports_sees_every_form(source: str, *, caught: bool) -> None:
    module = Module(source_tree.PACKAGE / "x.py", "x.py", source)
    imports = [node for node in module.nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    assert any(is_in_function(node, module) for node in imports) is caught
