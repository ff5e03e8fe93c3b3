"""The size limit that a provider names when it refuses a request as too large.

Providers say it in words, each in its own: "maximum context length is 8192 tokens, however you
requested 10234", "prompt is too long: 210000 tokens > 200000 maximum". Only the numbers are read.

Invariant: what is found is below the size that was refused.
"""

from typing import Final

from perdure.lazy_pattern import lazy_pattern

_NUMBER: Final = lazy_pattern(r"\d[\d,_]{2,11}(?![\d,_])")
_WITH_ANSWER: Final = lazy_pattern(r"(\d{3,12}) \+ (\d{3,12}) > (\d{3,12})")
"""The request, the answer that was asked for, and what both together may be."""
_LIMIT_MIN: Final = 1_024
"""No model that is used here has a smaller context; smaller numbers are codes and dates."""


def find_limit(refusal: str, refused_tokens: int) -> int | None:
    """The largest request that the provider takes, in our estimated tokens; None if not said.

    `refused_tokens`: our estimate of the request that was refused.
    """
    found = _said(refusal)
    if found is None:
        return None
    limit, counted = found
    if counted is not None:
        # What the provider counted tells how its tokens compare with our estimate.
        limit = limit * refused_tokens // counted
    return limit if limit < refused_tokens else None


def _said(refusal: str) -> tuple[int, int | None] | None:
    """The limit, and how large the request was, both as the provider counts."""
    if (split := _WITH_ANSWER.search(refusal)) is not None:
        counted, answer, both = map(int, split.groups())
        limit = both - answer
        return (limit, counted) if _LIMIT_MIN <= limit < counted else None
    texts = (match[0].replace(",", "").replace("_", "") for match in _NUMBER.finditer(refusal))
    numbers = [number for number in map(int, texts) if number >= _LIMIT_MIN]
    if not numbers:
        return None
    limit, counted = min(numbers), max(numbers)
    return limit, counted if counted > limit else None
