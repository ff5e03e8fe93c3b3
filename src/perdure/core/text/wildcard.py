"""Wildcards of permission rules: `*` is any characters, `?` is one, the rest is literal.

A match covers the whole text. Paths are compared with forward slashes. A pattern that ends in
` *` also matches without that ending, so that `ls *` covers a bare `ls`.

Invariant: matching time is at most proportional to pattern times text.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from perdure.core.limits import WILDCARD_CACHE_ITEMS_MAX


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` covers the whole of `text`."""
    if pattern == "*":
        return True
    if "*" not in pattern and "?" not in pattern:
        # Most rules name one action; comparing is much faster than a regular expression.
        return pattern.replace("\\", "/") == text.replace("\\", "/")
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


def compile_any(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """One expression that matches what any of the patterns covers; None without patterns."""
    expressions = [_compiled(pattern).pattern for pattern in patterns]
    return re.compile("|".join(expressions), re.DOTALL) if expressions else None


def star_pattern(pieces: Sequence[str]) -> str:
    """A regular expression for `pieces` of fixed length, with any characters between them.

    Each inner piece is an atomic group that takes its first match. That is exact, because an
    earlier match leaves more text for the rest, and it rules out backtracking.
    """
    first, *rest = pieces
    if not rest:
        return first
    inner = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return f"{first}{inner}.*{rest[-1]}"


@lru_cache(maxsize=WILDCARD_CACHE_ITEMS_MAX)
def _compiled(pattern: str) -> re.Pattern[str]:
    normal = pattern.replace("\\", "/")
    forms = [normal, normal[:-2]] if normal.endswith(" *") else [normal]
    return re.compile("|".join(map(_expression, forms)), re.DOTALL)


def _expression(form: str) -> str:
    return star_pattern([re.escape(piece).replace(r"\?", ".") for piece in form.split("*")])
