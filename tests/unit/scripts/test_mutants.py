"""Which changes of a program are tried, and which would only be noise."""

import ast
from pathlib import Path
from typing import Final

import pytest

from scripts import mutants, mutate

ROOT: Final = Path(__file__).parents[3]


def tried(source: str) -> list[str]:
    text = source.encode()
    return [change.applied(text).decode() for change in mutants.changes(text)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a is not b", ["a is b"]),
        ("a < b != c", ["a <= b != c", "a < b == c"]),
        ("a and b or c", ["a or b or c", "a and b and c"]),
        ("x = (a +\n  b)", ["x = (a -\n  b)"]),
        ("x = 'ä' if é else 0", ["x = 'ä' if (not (é)) else 0", "x = 'ä' if é else 1"]),
        ("if a == b: f()", ["if a != b: f()", "if a == b: pass"]),
        ("[x for x in y if x]", ["[x for x in y if (not (x))]"]),
        ("while True: break", ["while False: break", "while True: pass"]),
        ("f(g(x=True))", ["pass", "f(g(x=False))"]),
        ("raise E(1)", ["pass", "raise E(2)"]),
    ],
)
def test_what_a_program_decides_is_changed(source: str, expected: list[str]) -> None:
    assert tried(source) == expected


def test_the_words_of_a_statement_in_sql_are_exchanged() -> None:
    where = "x = 'DELETE FROM t WHERE a = :a AND b < 3'"
    assert tried(where) == [
        "x = 'DELETE FROM t WHERE a != :a AND b < 3'",
        "x = 'DELETE FROM t WHERE a = :a OR b < 3'",
        "x = 'DELETE FROM t WHERE a = :a AND b <= 3'",
    ]
    ordered = "x = f'SELECT a FROM {t} ORDER BY t.a, b DESC'"
    assert tried(ordered) == [
        "x = f'SELECT a FROM {t} ORDER BY t.a DESC, b DESC'",
        "x = f'SELECT a FROM {t} ORDER BY t.a, b'",
    ]
    assert tried("x = 'UPDATE t SET a = 1, b = 2 WHERE c IS NULL'") == [
        "x = 'UPDATE t SET a = 1, b = 2 WHERE c IS NOT NULL'"
    ]


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: 'int' | None, *, b: int) -> A | B: ...",
        "a: list[1] | None",
        "x = a + 'text'",
        "assert_never(x)",
        "'a docstring AND more'",
        "class A(B, kw_only=True): ...",
        "logger.warning('%s', 1)",
        "x = 'this < that = nothing'",
    ],
)
def test_what_nobody_could_miss_is_not_tried(source: str) -> None:
    assert tried(source) == []


def test_every_change_of_the_program_can_be_read_and_is_made_once() -> None:
    for path in sorted((ROOT / "src" / "perdure" / "store").rglob("*.py")):
        source = path.read_bytes()
        changed = [change.applied(source) for change in mutants.changes(source)]
        assert len({source, *changed}) == len(changed) + 1
        for text in changed[::7]:
            ast.parse(text)


def test_a_change_is_shown_by_its_line() -> None:
    source = b"a\nif b:\n    c(\n    )\n"
    shown = [change.shown(source) for change in mutants.changes(source)]
    assert shown == ["2\n  - if b:\n  + if (not (b)):", "3\n  - c(\n  + pass"]


@pytest.mark.parametrize(
    ("module", "tests"),
    [
        ("core/session/inbox.py", ["tests/unit/core/session/test_inbox.py"]),
        ("store/tables/inbox_table.py", ["tests/contract/store/tables/test_inbox.py"]),
        (
            "store/log/event_store.py",
            [
                "tests/contract/store/log/test_event_store.py",
                "tests/contract/store/log/test_event_store_append.py",
            ],
        ),
        ("core/histogram.py", ["tests/unit/core/test_histogram.py"]),
        ("core/nothing.py", []),
    ],
)
def test_a_module_is_tested_with_the_tests_at_its_path(module: str, tests: list[str]) -> None:
    assert mutate.mirrored(Path(module), ROOT) == tests


@pytest.mark.parametrize("module", mutate.ALSO)
def test_what_is_also_tested_with_exists(module: str) -> None:
    assert (ROOT / mutate.PACKAGE / module).exists()
    assert all((ROOT / path).exists() for path in mutate.ALSO[module])
