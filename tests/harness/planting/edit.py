"""Edits of a function's syntax tree: how a planted bug says what it changes.

An edit names what it needs in the function (a call, an assignment, its parameters) and never the
text of a line, so that a refactoring leaves it valid. One that no longer fits raises PlantingError.
"""

import ast
import builtins
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Symbol = FunctionNode | ast.ClassDef
T = TypeVar("T")

CALL: Final = "CALL"
"""In the code of ReplaceCall: the call that is replaced, without its await."""


class PlantingError(Exception):
    """The source has changed, so that a planted bug has to be pointed at another place."""


@dataclass(frozen=True, slots=True)
class Before:
    """Runs `code` at the start of the function."""

    code: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        first = 1 if ast.get_docstring(function) is not None else 0
        function.body[first:first] = _statements(self.code, known)


@dataclass(frozen=True, slots=True)
class After:
    """Runs `code` at the end of the function, before a return that ends it."""

    code: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        count = len(function.body)
        last = count - 1 if isinstance(function.body[-1], ast.Return) else count
        function.body[last:last] = _statements(self.code, known)


@dataclass(frozen=True, slots=True)
class Instead:
    """Runs `code` in place of everything that the function does."""

    code: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        function.body[:] = _statements(self.code, known)


@dataclass(frozen=True, slots=True)
class Assign:
    """Gives `name` another value in the one assignment to it alone."""

    name: str
    value: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        found = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _names(node.targets) == [self.name]
        ]
        _the_only(found, f"an assignment to {self.name}").value = _expression(self.value, known)


@dataclass(frozen=True, slots=True)
class ReplaceCall:
    """Evaluates `code` in place of the one call of `callee`, and of its await."""

    callee: str
    """How the name ends: `remove` also finds `self._store.remove`."""
    code: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        call = _the_only(_calls(function, self.callee), f"a call of {self.callee}")
        expression = _expression(self.code, known)
        _Replace(CALL, copy.deepcopy(call)).visit(expression)
        _Swap(call, expression).visit(function)


@dataclass(frozen=True, slots=True)
class DropKeyword:
    """Leaves a keyword argument out of the one call of `callee` that has it."""

    callee: str
    keyword: str

    def apply(self, function: FunctionNode, known: set[str]) -> None:
        found = [
            call
            for call in _calls(function, self.callee)
            if any(keyword.arg == self.keyword for keyword in call.keywords)
        ]
        call = _the_only(found, f"a call of {self.callee} with {self.keyword}")
        call.keywords = [each for each in call.keywords if each.arg != self.keyword]


@dataclass(frozen=True, slots=True)
class Define:
    """Gives a name of the module, imported or its own, another meaning in that module alone."""

    code: str


Edit = Before | After | Instead | Assign | ReplaceCall | DropKeyword | Define


def planted(source: str, symbol: str, edit: Edit) -> ast.Module:
    """The syntax tree of a module with the edit applied to `symbol`, such as `Store.append.job`."""
    module = ast.parse(source)
    try:
        if isinstance(edit, Define):
            if symbol not in _bound_at_top(module):
                raise PlantingError(f"the module has no name {symbol}")
            module.body += ast.parse(edit.code).body
        else:
            edit.apply(*_function(module, symbol))
    except PlantingError as error:
        raise PlantingError(f"{symbol}: {error}; point the planted bug at another place") from None
    return ast.fix_missing_locations(module)


def _function(module: ast.Module, symbol: str) -> tuple[FunctionNode, set[str]]:
    """The function, and the names that its code can use."""
    within: ast.Module | Symbol = module
    known = _bound_at_top(module)
    for name in symbol.split("."):
        found = [each for each in _defined_in(within) if each.name == name]
        within = _the_only(found, f"a definition of {name}")
        if isinstance(within, FunctionNode):
            known |= _bound(within)
    if not isinstance(within, FunctionNode):
        raise PlantingError("it is not a function")
    return within, known


def _defined_in(node: ast.AST) -> Iterator[Symbol]:
    """Functions and classes, also below an `if` or `try`, and not those of other functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Symbol):
            yield child
        else:
            yield from _defined_in(child)


def _calls(function: FunctionNode, callee: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and f".{ast.unparse(node.func)}".endswith(f".{callee}")
    ]


def _expression(code: str, known: set[str]) -> ast.expr:
    tree = ast.parse(code, mode="eval")
    _check_names(tree, known)
    return tree.body


def _statements(code: str, known: set[str]) -> list[ast.stmt]:
    tree = ast.parse(code)
    _check_names(tree, known)
    return tree.body


def _check_names(code: ast.AST, known: set[str]) -> None:
    """Planted code that names something unknown would fail for another reason than its defect."""
    names = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
    unknown = names - known - _bound(code) - {CALL, *dir(builtins)}
    if unknown:
        raise PlantingError(f"it knows no {', '.join(sorted(unknown))}")


def _bound_at_top(module: ast.Module) -> set[str]:
    names = {each.name for each in _defined_in(module)}
    for node in module.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {*_names(node.targets)}
        elif isinstance(node, ast.AnnAssign):
            names |= {*_names([node.target])}
    return names


def _bound(node: ast.AST) -> set[str]:
    """Parameters, and names that are assigned or defined, anywhere below a node."""
    names: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.arg):
            names.add(each.arg)
        elif isinstance(each, Symbol):
            names.add(each.name)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            names.add(each.id)
    return names


def _names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


class _Replace(ast.NodeTransformer):
    """Puts a node where a name stands."""

    def __init__(self, name: str, node: ast.expr) -> None:
        self._name = name
        self._node = node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._node if node.id == self._name else node


class _Swap(ast.NodeTransformer):
    """Puts a node where a call stands, or where it is awaited."""

    def __init__(self, call: ast.Call, by: ast.expr) -> None:
        self._call = call
        self._by = by

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self._by if node.value is self._call else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._by if node is self._call else self.generic_visit(node)


def _the_only(found: list[T], what: str) -> T:
    if len(found) != 1:
        raise PlantingError(f"{what} is there {len(found)} times instead of once")
    return found[0]
