"""The demo model's answer to a request for a title: the first words.

core.session.title defines how such a request begins; a test keeps the two in sync.
"""

from typing import Final

from perdure.lazy_pattern import lazy_pattern

WORDS_MAX: Final = 6

_REQUEST: Final = lazy_pattern(r"Name the conversation that begins with this message:\s+")


def is_asked(prompt: str) -> bool:
    return _REQUEST.match(prompt) is not None


def title_of(prompt: str) -> str:
    words = _REQUEST.sub("", prompt, count=1).split()[:WORDS_MAX]
    return f"Demo: {' '.join(words)}"
