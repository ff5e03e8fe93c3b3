"""Front matter: the keys at the top of a Markdown file.

It is between a first line `---` and the next line `---` or `...`. Without the second line it ends
with its paragraph if that parses as keys and values; otherwise there is no front matter and the
text is unchanged. The caller interprets the keys.
"""

import re
from typing import Final

from perdure.core.text import jsonc, yaml
from perdure.core.text.yaml import PlainYamlError
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject

_OPENING: Final = lazy_pattern(r"---[ \t]*\n")
_CLOSING: Final = lazy_pattern(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_BLANK_LINE: Final = lazy_pattern(r"\n[ \t]*\n")


class FrontMatterError(ValueError):
    """The front matter cannot be parsed. The message names the line."""


def split(text: str) -> tuple[JsonObject, str]:
    """The keys of a file's front matter, and its text. Line ends become newlines."""
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    opening = _OPENING.match(whole)
    if opening is None:
        return {}, _trimmed(whole)
    closing = _CLOSING.search(whole, opening.end())
    if closing is None:
        return _unclosed(whole, opening.end())
    head = whole[opening.end() : closing.start()]
    try:
        value = yaml.read(head)
    except PlainYamlError as error:
        raise FrontMatterError(f"line {error.line + 1} {error.message}") from error
    if value is None:
        value = {}
    if not jsonc.is_object(value):
        raise FrontMatterError("front matter must be keys and values")
    return value, _trimmed(whole[closing.end() :])


def _unclosed(whole: str, start: int) -> tuple[JsonObject, str]:
    end = _BLANK_LINE.search(whole, start)
    head = whole[start:] if end is None else whole[start : end.start()]
    try:
        value = yaml.read(head)
    except PlainYamlError:
        return {}, _trimmed(whole)
    if not jsonc.is_object(value):
        return {}, _trimmed(whole)
    return value, "" if end is None else _trimmed(whole[end.end() :])


def _trimmed(body: str) -> str:
    return body.strip("\n").rstrip()
