"""Makes the small changes of a module that its tests should notice.

Conditions are negated, comparisons moved by one, numbers raised, statements left out, and words of
SQL exchanged for their opposites. Changes that would fail on import or when a statement is prepared
are not made (annotations, concatenated text, a column of a SET): every test would notice them. Nor
are changes of what no caller is promised: a line of the log, the name of a struct.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

OPPOSITES: Final[dict[type[ast.AST], tuple[bytes, bytes]]] = {
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.Lt: (b"<", b"<="),
    ast.LtE: (b"<=", b"<"),
    ast.Gt: (b">", b">="),
    ast.GtE: (b">=", b">"),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (b"is not", b"is"),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (b"not in", b"in"),
    ast.And: (b"and", b"or"),
    ast.Or: (b"or", b"and"),
    ast.Add: (b"+", b"-"),
    ast.Sub: (b"-", b"+"),
    ast.Mult: (b"*", b"+"),
    ast.FloorDiv: (b"//", b"*"),
}
TURNED_BY_THEMSELVES: Final = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
SQL: Final = re.compile(rb"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|AND|IS NULL|ORDER BY)\b")
SQL_OPPOSITES: Final = tuple(
    (re.compile(found), instead)
    for found, instead in (
        (rb" AND ", b" OR "),
        (rb"(?<!INSERT)(?<!UPDATE) OR ", b" AND "),
        (rb" OR IGNORE", b""),
        (rb"IS NULL", b"IS NOT NULL"),
        (rb"IS NOT NULL", b"IS NULL"),
        (rb"NOT EXISTS", b"EXISTS"),
        (rb"NOT IN ", b"IN "),
        (rb" < ", b" <= "),
        (rb" <= ", b" < "),
        (rb" > ", b" >= "),
        (rb" >= ", b" > "),
        (rb" = ", b" != "),
        (rb" \+ 1", b" - 1"),
        (rb"MAX\(", b"MIN("),
        (rb"MIN\(", b"MAX("),
        (rb"LEFT JOIN", b"JOIN"),
        (rb"DISTINCT ", b""),
        (rb" DESC", b""),
        (rb"(ORDER BY [\w.]+)(?! DESC)\b(?!\.)", rb"\1 DESC"),
    )
)


@dataclass(frozen=True)
class Change:
    """A range of bytes of a module and its replacement."""

    start: int
    end: int
    instead: bytes

    @property
    def is_none(self) -> bool:
        return self.start == self.end

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.instead + source[self.end :]

    def shown(self, source: bytes) -> str:
        """Return the line number, and the line before and after the change."""
        line = source.count(b"\n", 0, self.start)
        before, after = (
            text.splitlines()[line].decode() for text in (source, self.applied(source))
        )
        return f"{line + 1}\n  - {before.strip()}\n  + {after.strip()}"


def changes(source: bytes) -> list[Change]:
    """Return all changes of `source` in its order, without duplicates."""
    found = _Changes(source)
    found.visit(ast.parse(source))
    return sorted(set(found.made), key=lambda change: (change.start, change.end, change.instead))


class _Changes(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.source = source
        self.made: list[Change] = []
        self._lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def generic_visit(self, node: ast.AST) -> None:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for operator, pair in zip(ops, pairwise((left, *others)), strict=True):
                    self._operator(operator, *pair)
            case ast.BoolOp(op=operator, values=values):
                for pair in pairwise(values):
                    self._operator(operator, *pair)
            case ast.BinOp(left=left, op=operator, right=right) if not _has_text(node):
                self._operator(operator, left, right)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                self._negation(test)
            case ast.Raise() | ast.Break() | ast.Continue():
                self._instead(node, b"pass")
            case _:
                pass
        super().generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negation(test)
        super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Constant() | ast.Call(func=ast.Name(id="assert_never")):
                return  # a docstring, or code that is never reached
            case ast.Call(func=ast.Attribute(value=ast.Name(id="logger"))):
                return
            case ast.Call() | ast.Await():
                self._instead(node, b"pass")
            case _:
                pass
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(flag):
                self._instead(node, str(not flag).encode())
            case int(number):
                self._instead(node, str(number + 1).encode())
            case str():
                self._sql(node)
            case _:
                pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._sql(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Leave the annotation as it is."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            self.visit(part)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (node.args, *node.body):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _operator(self, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        word, opposite = OPPOSITES.get(type(operator), (b"", b""))
        start, end = self._span(left)[1], self._span(right)[0]
        at = self.source.find(word, start, end)
        if word and at >= 0:
            self.made.append(Change(at, at + len(word), opposite))

    def _negation(self, test: ast.expr) -> None:
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], TURNED_BY_THEMSELVES):
            return
        if isinstance(test, ast.Constant):
            return
        start, end = self._span(test)
        self.made.append(Change(start, end, b"(not (" + self.source[start:end] + b"))"))

    def _sql(self, node: ast.expr) -> None:
        start, end = self._span(node)
        text = self.source[start:end]
        for pattern, instead in SQL_OPPOSITES if SQL.search(text) else ():
            for match in pattern.finditer(text):
                before = text[: match.start()]
                is_assignment = before.rfind(b"SET ") > before.rfind(b"WHERE ")
                if instead != b" != " or not is_assignment:
                    span = start + match.start(), start + match.end()
                    self.made.append(Change(*span, match.expand(instead)))

    def _instead(self, node: ast.stmt | ast.expr, text: bytes) -> None:
        self.made.append(Change(*self._span(node), text))

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        end_line, end_column = node.end_lineno, node.end_col_offset
        assert end_line is not None
        assert end_column is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[end_line - 1] + end_column


def _has_text(node: ast.AST) -> bool:
    parts: Iterator[ast.AST] = ast.walk(node)
    return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts)
