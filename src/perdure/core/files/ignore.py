"""The rules of ignore files, with the meaning that git gives them.

A rule is compared with a path below the directory of its file. Names are compared as bytes, so
that `?` is one byte. A rule that git could never match is left out. No file access here.

Invariant: matching is polynomial in the rule and the path; no rule can stall it.
"""

import re
import string
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from perdure.core.files import glob
from perdure.core.files.glob import Segments
from perdure.core.limits import (
    IGNORE_RULE_STARS_MAX,
    IGNORE_RULES_MAX,
    SEARCH_PATTERN_CHARS_MAX,
)
from perdure.core.text import wildcard
from perdure.schema.value import Value

_ANY: Final = "*"
_SLASH: Final = "/"
_ESCAPED_SLASH: Final = "\\/"
_BOM: Final = "\ufeff"


class IgnoreRule(Value, kw_only=True):
    segments: Segments
    negated: bool
    directory_only: bool


def parse_ignore(text: str) -> tuple[IgnoreRule, ...]:
    """The rules of one ignore file, in order. Excessive and meaningless lines are left out."""
    lines = islice(text.removeprefix(_BOM).split("\n"), IGNORE_RULES_MAX)
    rules = [_parse_rule(line.removesuffix("\r")) for line in lines]
    return tuple(rule for rule in rules if rule is not None)


def ignored(rules: Sequence[IgnoreRule], path: str, *, is_directory: bool) -> bool | None:
    """Whether the last matching rule ignores `path`; None if no rule matches."""
    names = _as_bytes(path).split(_SLASH)
    for rule in reversed(rules):
        if (is_directory or not rule.directory_only) and glob.covers(rule.segments, names):
            return not rule.negated
    return None


def _parse_rule(line: str) -> IgnoreRule | None:
    if line.startswith("#") or len(line) > SEARCH_PATTERN_CHARS_MAX:
        return None
    if line.count(_ANY) > IGNORE_RULE_STARS_MAX:
        return None
    text = _as_bytes(_without_trailing_spaces(line))
    negated = text.startswith("!")
    body = text[1:] if negated else text
    directory_only = body.endswith(_SLASH)
    pattern = body[:-1] if directory_only else body
    try:
        segments = _parse_pattern(pattern)
    except _NeverMatchesError:
        return None
    return IgnoreRule(segments=segments, negated=negated, directory_only=directory_only)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end do not count, unless a backslash is before them."""
    end = 0
    escaped = False
    for at, char in enumerate(line):
        if escaped or char != " ":
            end = at + 1
        escaped = char == "\\" and not escaped
    return line[:end]


class _NeverMatchesError(Exception):
    """The pattern matches no path: an open bracket, a backslash at the end, an empty name."""


def _parse_pattern(pattern: str) -> Segments:
    is_path = _SLASH in pattern
    names: list[list[str]] = [[]]
    for token in _tokens(pattern.removeprefix(_SLASH) if is_path else pattern):
        if token == _ESCAPED_SLASH and _is_any_depth(names[-1]):
            # Before an escaped slash git wants at least one directory.
            names += [[_ANY], []]
        elif token in (_SLASH, _ESCAPED_SLASH):
            names.append([])
        else:
            names[-1].append(token)
    if not all(names):
        raise _NeverMatchesError
    segments = [_segment(name, is_path=is_path) for name in names]
    if not is_path:
        # A name alone is looked for at any depth.
        return (None, *segments)
    if segments[-1] is None:
        # At the end any number of directories means everything below.
        segments.append(re.compile(".*", re.DOTALL))
    return tuple(segments)


def _segment(name: list[str], *, is_path: bool) -> re.Pattern[str] | None:
    if is_path and _is_any_depth(name):
        return None
    pieces = [""]
    for token in name:
        if token == _ANY:
            pieces.append("")
        else:
            pieces[-1] += token
    return re.compile(wildcard.star_pattern(pieces), re.DOTALL)


def _is_any_depth(name: list[str]) -> bool:
    return len(name) > 1 and all(token == _ANY for token in name)


def _tokens(pattern: str) -> Iterator[str]:
    """The tokens of a pattern: a slash, `*`, or a regular expression for one character."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "\\":
            if at == len(pattern):
                raise _NeverMatchesError
            yield _ESCAPED_SLASH if pattern[at] == _SLASH else re.escape(pattern[at])
            at += 1
        elif char in (_SLASH, _ANY):
            yield char
        elif char == "?":
            yield "[^/]"
        elif char == "[":
            members, at = _Bracket(pattern, at).parse()
            yield _one_of(members)
        else:
            yield re.escape(char)


class _Bracket:
    """Parser of a bracket expression: single characters, ranges and classes such as `[:digit:]`."""

    def __init__(self, pattern: str, at: int) -> None:
        self._pattern = pattern
        self._at = at
        self._members: set[str] = set()

    def parse(self) -> tuple[frozenset[str], int]:
        """The characters that it matches, and where it ends. Raises _NeverMatchesError."""
        negated = self._peek() in {"!", "^"}
        if negated:
            self._at += 1
        before = self._take_one(None)
        while self._peek() != "]":
            before = self._take_one(before)
        self._at += 1
        members = frozenset(self._members)
        # A slash separates names and is never in a bracket.
        return (_ALL - members if negated else members) - {_SLASH}, self._at

    def _take_one(self, before: str | None) -> str | None:
        """Take one member; returns it if it may begin a range."""
        char = self._next()
        if char == "\\":
            char = self._next()
        elif char == "-" and before is not None and self._peek() != "]":
            last = self._next()
            last = self._next() if last == "\\" else last
            self._members.update(map(chr, range(ord(before), ord(last) + 1)))
            return None
        elif char == "[" and self._peek() == ":":
            end = self._pattern.find("]", self._at + 1)
            if end < 0:
                raise _NeverMatchesError
            if self._pattern[end - 1] == ":" and end - 1 > self._at:
                name = self._pattern[self._at + 1 : end - 1]
                if name not in _CLASSES:
                    raise _NeverMatchesError
                self._members |= _CLASSES[name]
                self._at = end + 1
                return None
        self._members.add(char)
        return char

    def _peek(self) -> str:
        if self._at >= len(self._pattern):
            raise _NeverMatchesError
        return self._pattern[self._at]

    def _next(self) -> str:
        char = self._peek()
        self._at += 1
        return char


def _one_of(members: frozenset[str]) -> str:
    return f"[{''.join(map(re.escape, sorted(members)))}]" if members else r"(?!)"


def _as_bytes(text: str) -> str:
    """The text with one character for each of its bytes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


_ALL: Final = frozenset(map(chr, range(1, 256)))
_CLASSES: Final = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "blank": frozenset(" \t"),
    "cntrl": frozenset(map(chr, (*range(1, 32), 127))),
    "digit": frozenset(string.digits),
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset(" \t\n\r\v\f"),
    "upper": frozenset(string.ascii_uppercase),
    "xdigit": frozenset(string.hexdigits),
}
