"""Globs of search tools and rules of ignore files."""

from time import perf_counter

import pytest

from perdure.core.files import glob
from perdure.core.files.glob import InvalidPatternError
from perdure.core.limits import IGNORE_RULES_MAX


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/sub/a.py", False),
        ("src/*.py", "lib/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test_*.py", "test_a.py", True),
        ("src/**", "src/x/y", True),
        ("src/**", "src", False),
        ("*.{ts,tsx}", "a/b.tsx", True),
        ("{a,b}/{c,d}.x", "b/d.x", True),
        ("[ab].c", "a.c", True),
        ("[!ab].c", "a.c", False),
        ("[]x].c", "].c", True),
        ("a?.c", "ab.c", True),
        ("./a.c", "a.c", True),
        ("a+b(c).md", "a+b(c).md", True),
    ],
)
def test_a_glob_finds_the_paths_a_shell_user_expects(
    pattern: str, path: str, *, expected: bool
) -> None:
    assert glob.parse_glob(pattern).matches(path) is expected


@pytest.mark.parametrize("pattern", ["[z-a].c", "{a,b}" * 10])
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPatternError):
        glob.parse_glob(pattern)


def test_hostile_globs_do_not_stall() -> None:
    started = perf_counter()
    assert not glob.parse_glob("*a" * 100 + "b").matches("a" * 4_000)
    assert not glob.parse_glob("**/a/" * 50 + "b").matches("a/" * 2_000 + "c")
    assert perf_counter() - started < 1


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
    ],
)
def test_the_last_matching_rule_of_an_ignore_file_decides(
    rules: str, path: str, *, verdict: bool | None
) -> None:
    parsed = glob.parse_ignore(rules)
    assert glob.ignored(parsed, path, is_directory=False) is verdict


def test_a_rule_with_a_trailing_slash_is_about_directories() -> None:
    rules = glob.parse_ignore("build/")
    assert glob.ignored(rules, "x/build", is_directory=True) is True


def test_an_ignore_file_has_no_rule_that_takes_long_and_not_too_many() -> None:
    rules = glob.parse_ignore("*a" * 17 + "\n" + "a" * 2_000 + "\n*.o\n" + "[" * 1_000)
    assert len(rules) == 2
    assert glob.ignored(rules, "a.o", is_directory=False) is True
    many = glob.parse_ignore("".join(f"a{number}\n" for number in range(6_000)))
    assert len(many) == IGNORE_RULES_MAX
