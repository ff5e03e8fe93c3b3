"""Suggests what a user may have meant by a word that is unknown."""

from collections.abc import Iterable
from typing import Final

_SHOWN_MAX: Final = 3
_KNOWN_MAX: Final = 20_000
_MARGIN: Final = 0.1
"""How much less alike than the closest word another one may be."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean a or b?` with the known words like `word`, or an empty text."""
    close = find_close(word, known)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def find_close(word: str, known: Iterable[str]) -> list[str]:
    """The known words that are spelled like `word`, the closest first."""
    # Imported late: only a mistake needs it.
    from difflib import SequenceMatcher, get_close_matches

    names = list(dict.fromkeys(known))[:_KNOWN_MAX]
    by_folded = {name.lower(): name for name in reversed(names)}
    wanted = word.lower()
    close = get_close_matches(wanted, by_folded, n=_SHOWN_MAX)
    likeness = {name: SequenceMatcher(None, wanted, name).ratio() for name in close}
    best = max(likeness.values(), default=0.0)
    found = [name for name in close if likeness[name] >= best - _MARGIN]
    found += [name for name in by_folded if len(word) > 2 and wanted in name]
    return [by_folded[name] for name in dict.fromkeys(found)][:_SHOWN_MAX]
