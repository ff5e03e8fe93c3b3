"""A word of a shell command: its source, and its value if that is known before running.

Quotes do not hide a word from a rule: `"rm"` and `r\\m` are both `rm`. A word with an expansion or
a pattern in it has no value before it runs, and is shown as written.
"""

from collections.abc import Sequence
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_BARE: Final = lazy_pattern(r"(?:[\w@%+=:,./~^!-]|\{\})+")


class Word(Value):
    source: str
    literal: str | None = None
    """None if it depends on variables, files or other commands."""


def render_words(words: Sequence[Word]) -> str:
    """The words normalised: quoted only if needed, separated by one space."""
    return " ".join(_render_word(word) for word in words)


def _render_word(word: Word) -> str:
    if word.literal is None:
        return word.source
    if _BARE.fullmatch(word.literal):
        return word.literal
    inner = word.literal.replace("'", "'\\''")
    return f"'{inner}'"
