"""Paths that a prompt's text mentions: `@src/app.py`.

Whether there is such a file, and whether it may be shown, is not known here. An address of mail and
a decorator in pasted code are words with an @ too: what they name does not exist, mostly.
"""

import re
from collections.abc import Collection
from typing import Final

from perdure.core import limits

# Not within a word, as in an address of mail; not another mention's end.
_MENTION: Final = re.compile(r"(?<![\w@./-])@([^\s@`\"'<>()\[\]{}|\x00-\x1f]+)")
_TRAILING: Final = ".,;:!?"


def paths(text: str, *, known: Collection[str] = ()) -> tuple[str, ...]:
    """Relative paths in the order of their first mention, without the `known` ones."""
    found: dict[str, None] = {}
    for match in _MENTION.finditer(text):
        path = match[1].rstrip(_TRAILING)
        if not path or len(path) > limits.MENTION_CHARS_MAX or path[0] in "/~":
            continue
        if path not in known:
            found[path] = None
        if len(found) == limits.MENTIONS_MAX:
            break
    return tuple(found)
