"""Paths found by what a person remembers of them."""

import pytest

from perdure.core.files import mime
from perdure.core.text import fuzzy

PATHS = ("src/app.py", "src/app/", "docs/application.md", "src/a/p/p.txt", "readme.md", "maple.txt")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("app", ["src/app/", "src/app.py", "docs/application.md", "src/a/p/p.txt"]),
        ("APP PY", ["src/app.py"]),
        ("src/app", ["src/app/", "src/app.py", "src/a/p/p.txt"]),
        ("rdm", ["readme.md"]),
        ("maple.txtt", []),
        ("\u00df", []),
    ],
)
def test_the_plainest_match_comes_first(query: str, found: list[str]) -> None:
    assert fuzzy.best_matches(query, PATHS, limit=10) == found


def test_an_empty_query_finds_everything_the_shortest_first_up_to_the_limit() -> None:
    assert fuzzy.best_matches("", PATHS, limit=2) == ["src/app/", "maple.txt"]


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("a.txt", "text/plain"),
        ("a/B.HTML", "text/plain"),
        ("x.svg", "text/plain"),
        ("x.png", "image/png"),
        (".git/config", "application/octet-stream"),
        (".txt", "application/octet-stream"),
        ("a.txt/b", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_nothing_is_served_as_a_page(path: str, type: str) -> None:
    assert mime.served_type(path) == type
