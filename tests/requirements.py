"""Every rule of the specification, by number, and the marker by which a test claims one.

`python -m tests.requirements` reads the test files without running them and lists the rules that
no test claims. Numbers that a later rule replaced (S46-S48, S57, S60, S63, S107) are not here.

Invariant: the count of unclaimed rules never grows past `requirements_open.txt`.
"""

import ast
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.specification import RULES

TESTS: Final = Path(__file__).resolve().parent
RATCHET: Final = TESTS / "requirements_open.txt"


class UnknownRuleError(Exception):
    """A test names a rule that is not in the specification."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"no rule {rule!r}; see tests/specification.py")


def requirement(*rules: str) -> pytest.MarkDecorator:
    """Say which rules the decorated test proves."""
    if not rules:
        raise UnknownRuleError("")
    for rule in rules:
        if rule not in RULES:
            raise UnknownRuleError(rule)
    return pytest.mark.requirement(*rules)


@functools.cache
def claims(root: Path) -> Counter[str]:
    """Rule -> how many times the tests below `root` claim it, found by reading the source."""
    counted: Counter[str] = Counter()
    for path in sorted(root.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "requirement" in source:
            counted.update(claims_in(source))
    return counted


def claims_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _called_name(node) == "requirement":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def unproven(counted: Counter[str]) -> list[str]:
    return [rule for rule in RULES if not counted[rule]]


def open_allowed() -> int:
    return int(RATCHET.read_text(encoding="utf-8"))


def report() -> str:
    missing = unproven(claims(TESTS))
    lines = [f"{rule:5} {RULES[rule]}" for rule in missing]
    proven = len(RULES) - len(missing)
    lines.append(f"{proven} of {len(RULES)} rules are proven by a test, {len(missing)} are open")
    return "\n".join(lines)


def _called_name(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def main() -> int:
    sys.stdout.write(report() + "\n")
    return 1 if len(unproven(claims(TESTS))) > open_allowed() else 0


if __name__ == "__main__":
    sys.exit(main())
