"""How a model is told of what a person attached: headings, cut marks, and what was left out."""

import re
from collections.abc import Collection
from typing import Final

from perdure.core import limits


def with_heading(kind: str, name: str, text: str) -> str:
    return f"Attached {kind} {one_line(name)}:\n{text}"


def omitted_note(name: str, why: str) -> str:
    return f"[Attachment left out: {one_line(name)}: {why}]"


def truncate(text: str, bytes_max: int = limits.READ_BYTES_MAX) -> str:
    """As much of the text as may be told at once, with a mark where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    kept = data[:bytes_max].decode("utf-8", "ignore")
    return f"{kept}\n[Cut here: {len(data) - bytes_max} more bytes]"


def one_line(text: str) -> str:
    return " ".join(text.split())[:200] or "a file"


# Not within a word, as in an address of mail; not another mention's end.
_MENTION: Final = re.compile(r"(?<![\w@./-])@([^\s@`\"'<>()\[\]{}|\x00-\x1f]+)")
_TRAILING: Final = ".,;:!?"


def mentioned_paths(text: str, *, known: Collection[str] = ()) -> tuple[str, ...]:
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
