"""One module makes the command lines of git, so that none can lack an option."""

import ast
from collections.abc import Iterator

from tests.tidy import source_tree

MAKER = "location/project/git.py"


def git_commands(tree: ast.AST) -> Iterator[int]:
    """The lines of tuples and lists whose first word is the program git."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and node.elts:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and _is_git(first.value):
                yield node.lineno


def _is_git(word: object) -> bool:
    return isinstance(word, str) and word.rpartition("/")[2] == "git"


def test_no_other_module_calls_git() -> None:
    found = [
        f"{module.name}:{line}"
        for module in source_tree.modules()
        if module.name != MAKER
        for line in git_commands(module.tree)
    ]
    assert found == []


def test_calls_are_seen() -> None:
    seen = 'run(("git", "log"))\nrun(["/usr/bin/git", x])\nrun((*("git", "-c"), y))\n{"git": 1}'
    assert list(git_commands(ast.parse(seen))) == [1, 2, 3]
