"""A word of a shell command: as it is written, and its value where that is known beforehand.

Quotes do not hide a word from a rule: `"rm"` and `r\\m` are both `rm`. A word with an expansion or
a pattern in it has no value until it runs, and is shown as it is written.
"""

import re
from collections.abc import Sequence
from typing import Final

from perdure.schema.value import Value

_BARE: Final = re.compile(r"(?:[\w@%+=:,./~^!-]|\{\})+")


class Word(Value):
    source: str
    literal: str | None = None
    """None: it depends on variables, files or other commands."""


def render_words(words: Sequence[Word]) -> str:
    """The words in one spelling: quoted only where it matters, one space between two of them."""
    return " ".join(_render_word(word) for word in words)


def _render_word(word: Word) -> str:
    if word.literal is None:
        return word.source
    if _BARE.fullmatch(word.literal):
        return word.literal
    inner = word.literal.replace("'", "'\\''")
    return f"'{inner}'"
