"""The source as data: what the tidy tests read. Nothing here imports the code it looks at.

Invariant: whatever is read or parsed, is read or parsed once, and only for who asks.
"""

import ast
import functools
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PACKAGE: Final = ROOT / "src" / "perdure"

MADE_HERE: Final = frozenset(
    {".git", ".venv", ".bench", ".cache", ".scratch", ".ruff_cache", ".pytest_cache", ".hypothesis"}
    | {".import_linter_cache", "__pycache__", "dist", "node_modules"}
)

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file; `name` is its path below the package, as in `core/session/inbox.py`."""

    path: Path
    name: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, in the order of `ast.walk`."""
        return tuple(ast.walk(self.tree))

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, in name order."""
    return tuple(_read(path) for path in sorted(PACKAGE.rglob("*.py")))


@functools.cache
def committed_files() -> tuple[Path, ...]:
    """Every text file that is, or would be, under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        paths = [*_walk()]  # An exported tree, without its repository.
    return tuple(sorted(path for path in paths if path.is_file() and _is_text(path)))


@functools.cache
def text_of(path: Path) -> str:
    """What a file says; bytes that are no text are replaced."""
    return path.read_text(encoding="utf-8", errors="replace")


def functions(nodes: Iterable[ast.AST]) -> Iterator[FunctionNode]:
    for node in nodes:
        if isinstance(node, FunctionNode):
            yield node


def imported_names(node: ast.AST) -> tuple[str, ...]:
    """The modules that an import statement names; empty for any other node."""
    match node:
        case ast.Import(names=names):
            return tuple(alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            return (module, *(f"{module}.{alias.name}" for alias in names))
        case _:
            return ()


def _read(path: Path) -> Module:
    return Module(path=path, name=path.relative_to(PACKAGE).as_posix(), text=text_of(path))


def _walk() -> Iterator[Path]:
    for folder, children, names in os.walk(ROOT):
        children[:] = [name for name in children if name not in MADE_HERE]
        yield from (Path(folder) / name for name in names)


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" not in file.read(4096)
