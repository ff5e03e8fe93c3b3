"""Commands show nothing but through cli.terminal, which lets nothing act on the screen."""

import ast
from collections.abc import Iterator
from typing import Final

from tests.tidy import source_tree

OWN_TEXTS: Final = {
    "cli/terminal.py": "it is the way out",
    "cli/main.py": "the version and the list of commands are its own texts, and load nothing",
}
STREAMS: Final = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})
WRITERS: Final = frozenset({"write", "writelines", "buffer"})


def raw_output(tree: ast.AST) -> Iterator[int]:
    """The lines that write to a standard stream or a descriptor of one."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=stream), attr=writer):
                if stream in STREAMS and writer in WRITERS:
                    yield node.lineno
            case ast.Call(func=ast.Name(id="print")):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write")):
                yield node.lineno
            case _:
                pass


def test_no_command_writes_past_the_terminal() -> None:
    found = [
        f"{module.name}:{line}"
        for module in source_tree.modules()
        if module.name.startswith("cli/") and module.name not in OWN_TEXTS
        for line in raw_output(module.tree)
    ]
    assert found == []


def test_raw_output_is_seen() -> None:
    seen = "\nsys.stdout.write(x)\nprint(x)\nsys.stderr.buffer.write(x)\nos.write(1, x)"
    assert sorted(set(raw_output(ast.parse(seen)))) == [2, 3, 4, 5]
