"""Texts that present a prompt's attachments to the model, and `@path` mentions in prompts."""

from collections.abc import Collection
from itertools import islice
from typing import Final

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern


def with_heading(kind: str, name: str, text: str) -> str:
    return f"Attached {kind} {one_line(name)}:\n{text}"


def omitted_note(name: str, why: str) -> str:
    return f"[Attachment left out: {one_line(name)}: {why}]"


def truncate(text: str, bytes_max: int = limits.READ_BYTES_MAX) -> str:
    """The text, cut to `bytes_max`, with a mark where it was cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return text
    kept = data[:bytes_max].decode("utf-8", "ignore")
    return f"{kept}\n[Cut here: {len(data) - bytes_max} more bytes]"


def one_line(text: str) -> str:
    return " ".join(text.split())[:200] or "a file"


# Not within a word, as in a mail address, and not at the end of another mention. Runs of the sign
# are taken as a whole, because a text may consist of them.
_MENTION: Final = lazy_pattern(r"@@++|@(?<![\w./-]@)([^\s@`\"'<>()\[\]{}|\x00-\x1f]++)")
_TRAILING: Final = ".,;:!?"


def mentioned_paths(text: str, *, known: Collection[str] = ()) -> tuple[str, ...]:
    """Mentioned relative paths in order of first mention, without the `known` ones."""
    found: dict[str, None] = {}
    read = _MENTION.finditer(text, 0, limits.MENTIONS_TEXT_CHARS_MAX)
    for match in islice(read, limits.MENTIONS_READ_MAX):
        path = (match[1] or "").rstrip(_TRAILING)
        if not path or len(path) > limits.MENTION_CHARS_MAX or path[0] in "/~":
            continue
        if path not in known:
            found[path] = None
        if len(found) == limits.MENTIONS_MAX:
            break
    return tuple(found)
