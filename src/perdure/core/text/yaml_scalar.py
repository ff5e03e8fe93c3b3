"""YAML values on the line of their key: quoted texts, bracketed lists and maps, plain words.

Part of core.text.yaml, which handles lines and indentation.

Invariant: a text that fits no rule is returned unchanged, never refused.
"""

import math
import re
from collections.abc import Iterable
from typing import Final

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject, JsonValue

_DOUBLE: Final = lazy_pattern(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_SINGLE: Final = lazy_pattern(r"'((?:[^']++|'')*+)'")
_AFTER_QUOTED: Final = lazy_pattern(r"\s*(?:#.*)?")
_COMMENT: Final = lazy_pattern(r"(?:^|\s)#")
_ESCAPE: Final = lazy_pattern(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL
)
_ESCAPED: Final = dict(zip('"\\/ ntr0eabfv', '"\\/ \n\t\r\0\x1b\a\b\f\v', strict=True))
_OPEN_ESCAPE: Final = lazy_pattern(r"(?<!\\)(?:\\\\)*+\\\Z")
_INTEGER: Final = lazy_pattern(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL: Final = lazy_pattern(r"[-+]?(?:(?:0|[1-9][0-9]*+)?+\.)?+[0-9]++(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: Final[dict[str, JsonValue]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_SPACE: Final = lazy_pattern(r"(?:\s++|(?<=\s)#[^\n]*+)*+")
_FLOW_KEY: Final = lazy_pattern(r"[^\s,\[\]{}:](?:[^,\[\]{}:\n]|:(?=\S))*+(?=:)")
_FLOW_WORD: Final = lazy_pattern(r"[^\s,\[\]{}][^,\[\]{}\n]*+")


def typed(text: str) -> JsonValue:
    """The value of a plain word: null, a boolean, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text) and ("." in text or "e" in text.lower()):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def quoted(text: str) -> str | None:
    """The content if `text` is one quoted string, optionally followed by a comment."""
    found = quoted_prefix(text)
    if found is None:
        return None
    content, end = found
    return content if _AFTER_QUOTED.fullmatch(text, end) else None


def quoted_prefix(text: str, at: int = 0) -> tuple[str, int] | None:
    """The content of the quoted string that begins at `at`, and where it ends."""
    if double := _DOUBLE.match(text, at):
        return _unescaped(_joined(double[1], escapes=True)), double.end()
    if single := _SINGLE.match(text, at):
        return _joined(single[1], escapes=False).replace("''", "'"), single.end()
    return None


def uncommented(line: str) -> str:
    """`line` without its comment, which begins with `#` at the start or after a blank."""
    comment = _COMMENT.search(line)
    return line if comment is None else line[: comment.start()].rstrip()


def folded(lines: Iterable[str]) -> str:
    """Lines joined into one paragraph; empty lines become line breaks."""
    pieces: list[str] = []
    blanks = 0
    for line in lines:
        if not line:
            blanks += 1
            continue
        if pieces:
            pieces.append("\n" * blanks if blanks else " ")
        pieces.append(line)
        blanks = 0
    return "".join(pieces)


def _joined(text: str, *, escapes: bool) -> str:
    """The text between quotes on one line. A backslash at the end of a line joins without a gap."""
    if "\n" not in text:
        return text
    first, *rest = text.split("\n")
    pieces = [first.rstrip(" \t")]
    blanks = 0
    for number, line in enumerate(rest, 1):
        words = line.lstrip(" \t") if number == len(rest) else line.strip(" \t")
        if not words and number < len(rest):
            blanks += 1
            continue
        is_escaped = escapes and _OPEN_ESCAPE.search(pieces[-1]) is not None
        if is_escaped:
            pieces[-1] = pieces[-1][:-1]
        pieces += ("\n" * blanks if blanks else "" if is_escaped else " ", words)
        blanks = 0
    return "".join(pieces)


class NotFlowError(ValueError):
    """The text begins with a bracket but is not a list or a map."""


class Flow:
    """Parser of one bracketed value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> JsonValue:
        """The value of the whole text. Raises NotFlowError."""
        value = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise NotFlowError
        return value

    def _value(self, depth: int) -> JsonValue:
        if depth > limits.FRONT_MATTER_NESTING_MAX:
            raise NotFlowError
        self._skip()
        if self._take("["):
            return self._list(depth)
        if self._take("{"):
            return self._map(depth)
        string = quoted_prefix(self._text, self._at)
        if string is not None:
            content, self._at = string
            return content
        return typed(self._word(_FLOW_WORD))

    def _list(self, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        self._skip()
        while not self._take("]"):
            # A list may contain a pair without braces.
            key = self._pair_key()
            value = self._value(depth + 1) if key is None else {key: self._pair_value(depth + 1)}
            found.append(value)
            self._next("]")
        return found

    def _map(self, depth: int) -> JsonObject:
        found: JsonObject = {}
        self._skip()
        while not self._take("}"):
            key = self._pair_key()
            if key is None:
                # A key by itself has no value.
                found[self._key()] = None
            else:
                found[key] = self._pair_value(depth + 1)
            self._next("}")
        return found

    def _key(self) -> str:
        string = quoted_prefix(self._text, self._at)
        if string is None:
            return self._word(_FLOW_WORD)
        content, self._at = string
        return content

    def _pair_key(self) -> str | None:
        """Consume a key and its colon; None if the next value is not a pair."""
        start = self._at
        string = quoted_prefix(self._text, self._at)
        if string is not None:
            key, self._at = string
            self._skip()
        elif (word := _FLOW_KEY.match(self._text, self._at)) is not None:
            key, self._at = uncommented(word[0]).strip(), word.end()
        else:
            return None
        if self._take(":"):
            return key
        self._at = start
        return None

    def _pair_value(self, depth: int) -> JsonValue:
        self._skip()
        return (
            None if self._text[self._at : self._at + 1] in {",", "]", "}"} else self._value(depth)
        )

    def _word(self, pattern: re.Pattern[str]) -> str:
        word = pattern.match(self._text, self._at)
        if word is None:
            raise NotFlowError
        self._at = word.end()
        return uncommented(word[0]).strip()

    def _next(self, end: str) -> None:
        """Consume a comma, or check for the end without consuming it."""
        self._skip()
        if self._take(","):
            self._skip()
        elif not self._text.startswith(end, self._at):
            raise NotFlowError

    def _take(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._at):
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    replaced = _ESCAPE.sub(_character, text)
    # Join surrogate pairs; a lone surrogate could not be encoded as UTF-8.
    return replaced.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is not None:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else escape[0]
    return _ESCAPED.get(escape[4], escape[0])
