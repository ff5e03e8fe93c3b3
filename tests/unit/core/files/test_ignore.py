"""Rules of ignore files. tests/contract/core compares them with git."""

from time import perf_counter

import pytest

from perdure.core.files import ignore
from perdure.core.limits import IGNORE_RULES_MAX


@pytest.mark.parametrize(
    ("rules", "path", "verdict"),
    [
        ("*.log", "deep/a.log", True),
        ("/a.log", "deep/a.log", None),
        ("/a.log", "a.log", True),
        ("a/b", "x/a/b", None),
        ("*.log\n!keep.log", "keep.log", False),
        ("# comment\n\n", "# comment", None),
        ("\\#name", "#name", True),
        ("build/", "build", None),
        ("doc/**/x", "doc/a/b/x", True),
        ("[z-a]\n*.o", "a.o", True),
        ("\ufefffirst\nsecond", "first", True),
        ("name\r\nother", "name", True),
        ("name   ", "name", True),
        ("name\\ ", "name ", True),
        ("name\\ ", "name", None),
        ("name\t", "name", None),
        ("[[:digit:]]", "7", True),
        ("[[:digit:]]", "d", None),
        ("[![:alpha:]]x", "1x", True),
        ("./name", "name", None),
        ("a/./b", "a/b", None),
        ("a//b", "a/b", None),
        ("[a/b]x/y", "ax/y", True),
        ("x**y/z", "xay/z", True),
        ("x**y/z", "x/y/z", None),
        ("?", "\u00e9", None),
        ("??", "\u00e9", True),
        ("**\\/a", "a", None),
        ("**\\/a", "b/a", True),
        ("a[", "a[", None),
        ("a\\", "a\\", None),
        ("a\vb", "a\vb", True),
    ],
)
def test_the_last_matching_rule_of_an_ignore_file_decides(
    rules: str, path: str, *, verdict: bool | None
) -> None:
    parsed = ignore.parse_ignore(rules)
    assert ignore.ignored(parsed, path, is_directory=False) is verdict


def test_a_rule_with_a_trailing_slash_is_about_directories() -> None:
    rules = ignore.parse_ignore("build/")
    assert ignore.ignored(rules, "x/build", is_directory=True) is True


def test_hostile_rules_do_not_stall() -> None:
    started = perf_counter()
    for rule in ("*a" * 100 + "b", "**/a/" * 50 + "b", "[" * 5_000, "[[:" * 5_000, "\\" * 9_999):
        rules = ignore.parse_ignore(rule)
        ignore.ignored(rules, "a/" * 2_000 + "c", is_directory=False)
        ignore.ignored(rules, "a" * 4_000, is_directory=False)
    assert perf_counter() - started < 1


def test_an_ignore_file_has_no_rule_that_takes_long_and_not_too_many() -> None:
    rules = ignore.parse_ignore("*a" * 17 + "\n" + "a" * 2_000 + "\n*.o\n")
    assert len(rules) == 1
    assert ignore.ignored(rules, "a.o", is_directory=False) is True
    many = ignore.parse_ignore("".join(f"a{number}\n" for number in range(6_000)))
    assert len(many) == IGNORE_RULES_MAX
