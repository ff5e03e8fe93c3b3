"""Every regular expression of the package takes linear time, whatever text it is given.

A search does not yield to the event loop and does not release the interpreter lock, so a text of
a stranger on which a pattern backtracks would stop the whole server, also from a thread.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from perdure.core.files import glob
from perdure.core.text import wildcard
from perdure.core.web import html_tokens
from tests.figures import Figure
from tests.tidy import regex_sites, source_tree
from tests.tidy.regex_inputs import make_hard_texts
from tests.tidy.regex_sites import Pattern, Site

LENGTHS: Final = (16, 22, 30, 40, 54, 72, 100, 400, 10_000)
"""Exponential time shows at one of the first, cubic at 400 characters, quadratic at the last."""
SECONDS_MAX: Final = 0.02
"""Processor time: twenty times what a linear pattern needs for the longest text."""
GLOB_SECONDS_MAX: Final = 0.06
"""The same for what is more than one expression, with texts of 16,384 characters."""
TRIES: Final = 3
LAYERS: Final = sorted(
    path.name for path in source_tree.PACKAGE.iterdir() if path.is_dir() and path.name[0] != "_"
)

COMPUTED: Final[Mapping[str, str]] = {
    "core/files/glob.py:_name_expression": "test_a_glob_with_many_stars",
    "core/files/ignore.py:_segment": "test_hostile_rules_do_not_stall in tests/unit/core/files",
    "core/text/wildcard.py:_compiled": "test_a_wildcard_with_many_stars",
    "core/text/wildcard.py:compile_any": "test_a_wildcard_with_many_stars",
    "core/web/html_tokens.py:_after_dropped": "test_a_page_of_unclosed_elements",
    "lazy_pattern.py:__getattr__": "its sources are arguments of `lazy_pattern`",
    "llm/demo/tasks.py:_words": "its results are values of the module",
    "llm/http/error_kind.py:_any_of": "its results are values of the module",
    "protocol/problems.py:_pattern": "the patterns of schema/ids.py, which are values there",
    "schema/secrets/commands.py:_program": "its results are values of the module",
    "tools/search/fallback_program.py:main": "a process of its own, with a time limit",
    "tools/search/fallback_program.py:_compile_prefilter": "a process of its own, likewise",
}
"""Functions that compile what is no constant, and what shows that it is linear."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("layer", LAYERS)
def test_no_text_makes_a_pattern_slow(layer: str, figure: Figure) -> None:
    sites = regex_sites.find_constant(layer)
    figure("regular expressions", len(sites))
    figure("hard texts", sum(len(make_hard_texts(site.pattern)) for site in sites))
    slow = [line for site in sites for line in find_slow(site)]
    assert not slow, "\n".join(slow)


def test_every_function_that_puts_a_pattern_together_is_accounted_for() -> None:
    assert set(regex_sites.find_computed()) == set(COMPUTED)


def test_a_glob_with_many_stars() -> None:
    for pattern in ("*a*a*a*a*a*b", "[!a]*[!b]*[!c]*?a", "a?*a?*a?*b", "[" * 1_000, "{a,b}*" * 5):
        made = glob.parse_glob(pattern)
        assert seconds(lambda made=made: made.matches("a" * 16_384)) < GLOB_SECONDS_MAX
        assert seconds(lambda made=made: made.matches("ab/" * 5_000)) < GLOB_SECONDS_MAX


def test_a_wildcard_with_many_stars() -> None:
    for pattern in ("*a*a*a*a*a*b", "a?*a?*a?*b", "*" * 1_000 + "b", "git *" * 100 + "x"):
        for text in ("a" * 16_384, "git " * 4_096, "\n" * 16_384):
            assert seconds(lambda p=pattern, t=text: wildcard.matches(p, t)) < GLOB_SECONDS_MAX
            several = wildcard.compile_any((pattern, f"{pattern}a", f"c{pattern}"))
            assert several is not None
            assert seconds(lambda made=several, t=text: made.fullmatch(t)) < GLOB_SECONDS_MAX


def test_a_page_of_unclosed_elements() -> None:
    for piece in ("<script>", "<style ", "<title></titl", "<textarea></", "<!--", '<a b="'):
        page = piece * (16_384 // len(piece))
        assert seconds(lambda page=page: list(html_tokens.tokens(page))) < GLOB_SECONDS_MAX


@pytest.mark.timeout(300)
def test_a_quadratic_pattern_would_be_found() -> None:
    """The check itself: patterns as they have been in this package."""
    for source, method in (
        (r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", "fullmatch"),
        (r"\{.*(?:,|\.\.)", "search"),
        (r"\beyJ[\w-]{8,}\.[\w-]{8,}", "sub"),
        (r"(?:a|b|ab)*c", "match"),
    ):
        assert find_slow(Site("here", re.compile(source), frozenset({method})))


def find_slow(site: Site) -> list[str]:
    """A line for the first text that takes the pattern too long; the shortest texts come first."""
    texts = make_hard_texts(site.pattern)
    for length in LENGTHS:
        for method in sorted(site.methods - {"compile"}) or ["search"]:
            for text in (hard.of_length(length) for hard in texts):
                if seconds(lambda m=method, t=text: apply(site.pattern, m, t)) > SECONDS_MAX:
                    return [f"{site.where}: {method} of {length} characters like {text[:40]!r}"]
    return []


def apply(pattern: Pattern, method: str, text: str) -> object:
    """Call the method as the package does, to the end of the text."""
    data = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    if method in {"sub", "subn"}:
        return getattr(pattern, method)(data[:0], data)
    found = getattr(pattern, method)(data)
    return list(found) if method == "finditer" else found


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread, the least of a few tries: a busy machine does not count."""
    least = math.inf
    for _ in range(TRIES):
        began = time.thread_time()
        work()
        least = min(least, time.thread_time() - began)
        if least <= SECONDS_MAX:
            break
    return least
