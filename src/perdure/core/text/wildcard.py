"""Wildcards of permission rules: `*` is any run of characters, `?` is one, the rest is literal.

A match covers the whole text. Paths are compared with forward slashes. A pattern that ends in
` *` also matches without that ending, so that `ls *` covers a bare `ls`.

Invariant: matching takes time proportional to pattern times text, whatever the pattern.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from perdure.core.limits import WILDCARD_CACHE_ITEMS_MAX


def matches(pattern: str, text: str) -> bool:
    """Whether `pattern` covers the whole of `text`."""
    if pattern == "*":
        return True
    if "*" not in pattern and "?" not in pattern:
        # Most rules name one action: comparing is much quicker than an expression.
        return pattern.replace("\\", "/") == text.replace("\\", "/")
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


def star_pattern(pieces: Sequence[str]) -> str:
    """A regular expression for `pieces`, each of fixed length, with any run between two of them.

    Each inner piece is taken at its first place and never reconsidered (an atomic group). That is
    exact, because an earlier place leaves more room for the rest, and it rules out backtracking.
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
