"""The pattern that is saved when a person approves a command with "always".

A harmless command (core.shell.harmless_program) is saved as its name and ` *`: `git status *`. Any
other command is saved word for word, because another option or operand may write a file or run a
program. A saved pattern covers only commands for which the same pattern would be saved: `sort *`
does not cover `sort -o x`.

Invariant: a text saved word for word matches nothing else. A text with a wildcard in it cannot be
saved that way, so it is not saved at all.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core.shell.harmless_program import harmless_name
from perdure.core.shell.word import Word, render_words
from perdure.lazy_pattern import lazy_pattern

_WILDCARDS: Final = lazy_pattern(r"[*?\\]")


def pattern_for(words: Sequence[Word]) -> str | None:
    """The pattern to save for a command: a prefix pattern, its own text, or None."""
    values = [word.literal for word in words if word.literal is not None]
    name = harmless_name(values) if len(values) == len(words) else None
    return exact_pattern(render_words(words)) if name is None else f"{name} *"


def exact_pattern(text: str) -> str | None:
    """`text` as a pattern that matches it alone; None if it contains a wildcard."""
    return None if _WILDCARDS.search(text) else text
