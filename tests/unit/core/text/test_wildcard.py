"""Wildcards of permission rules."""

import fnmatch
import re
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.text import wildcard


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*", "", True),
        ("*", "anything/at all\nwith lines", True),
        ("src/*", "src/a/b.py", True),
        ("src/*", "lib/a.py", False),
        ("src/*", "src", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("a?c", "a\nc", True),
        ("a.c", "abc", False),
        ("(a+)+$[x]", "(a+)+$[x]", True),
        ("git *", "git", True),
        ("git *", "git push", True),
        ("git *", "gitk", False),
        ("git*", "gitk", True),
        ("* *", "ls", True),
        ("src\\*", "src/a.py", True),
        ("src/*", "src\\a.py", True),
        ("A", "a", False),
        ("", "", True),
        ("", "a", False),
        ("a**b", "ab", True),
        ("ab*ba", "aba", False),
    ],
)
def test_a_pattern_covers_the_whole_text_or_nothing(
    pattern: str, text: str, *, expected: bool
) -> None:
    assert wildcard.matches(pattern, text) is expected


def test_a_hostile_pattern_does_not_stall() -> None:
    started = perf_counter()
    assert not wildcard.matches("*a" * 200 + "b", "a" * 20_000)
    assert perf_counter() - started < 1


@given(st.text("ab?*/", max_size=8), st.text("ab/", max_size=12))
def test_greedy_matching_agrees_with_a_plain_translation(pattern: str, text: str) -> None:
    plain = re.compile(fnmatch.translate(pattern), re.DOTALL)
    assert wildcard.matches(pattern, text) is (plain.match(text) is not None)
