"""The subset of YAML used in front matter, parsed leniently.

Supported are mappings and lists by indentation or in brackets, quoted and plain texts, block texts
(`|`, `>`) and comments. Any other value is taken as text, so that a colon in it needs no quotes.
Anchors, tags and multiple documents are not supported and count as text. Of a repeated key the
last value counts.

Invariant: parsing time is proportional to the input, and nesting is bounded.
"""

import re
from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.text import yaml_scalar
from perdure.core.text.yaml_scalar import Flow, NotFlowError
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

_LINE_END: Final = lazy_pattern(r"\r\n|\r|\n")
_INDENT: Final = lazy_pattern(r"[ \t]*")
_ITEM: Final = lazy_pattern(r"-(?:\s|$)")
_BLOCK_TEXT: Final = lazy_pattern(r"([|>])([+-]?)([1-9]?)([+-]?)(?:\s+#.*)?")
_TAB_COLUMNS: Final = 4


class PlainYamlError(ValueError):
    """The text cannot be parsed. Lines count from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read(text: str) -> JsonValue:
    """The value of the text; None if it has only comments."""
    return _Reader(text).whole()


class _Line(Value):
    number: int
    indent: int
    text: str
    """Without indentation and trailing blanks."""
    raw: str = ""
    """As written, for block texts."""

    def has_text_tab(self, indent: int) -> bool:
        """Whether a line of blanks has a tab that is text of a block, not indentation."""
        spaces = len(self.raw) - len(self.raw.lstrip(" "))
        return not self.text and indent < spaces < len(self.raw)

    @property
    def is_item(self) -> bool:
        return _ITEM.match(self.text) is not None

    @property
    def is_flow(self) -> bool:
        return self.text[0] in "[{"


class _Reader:
    def __init__(self, text: str) -> None:
        raw = _LINE_END.split(text)
        self._has_last_line_end = not raw[-1]
        if not raw[-1]:
            raw.pop()
        self._lines = [_line(number, line) for number, line in enumerate(raw, 1)]
        self._at = 0

    def whole(self) -> JsonValue:
        value = self._block(-1, 0)
        line = self._next()
        if line is not None:
            raise PlainYamlError("does not fit the indentation of the lines above it", line.number)
        return value

    def _next(self) -> _Line | None:
        """The next line with content, without consuming it."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text and not line.text.startswith("#"):
                return line
            self._at += 1
        return None

    def _block(self, outer: int, depth: int) -> JsonValue:
        """The value of the lines indented deeper than `outer`; None if there are none."""
        line = self._next()
        if line is None or line.indent <= outer:
            return None
        if depth > limits.FRONT_MATTER_NESTING_MAX:
            raise PlainYamlError("is nested too deep", line.number)
        if line.is_item:
            return self._items(line.indent, depth)
        if not line.is_flow and _key(line.text) is not None:
            return self._mapping(line.indent, depth)
        self._at += 1
        return self._inline(line.text, outer)

    def _mapping(self, indent: int, depth: int) -> JsonObject:
        found: JsonObject = {}
        while (line := self._next()) is not None and line.indent == indent:
            entry = None if line.is_item else _key(line.text)
            if entry is None:
                raise PlainYamlError("must be written `key: value`", line.number)
            key, rest = entry
            self._at += 1
            beside = rest and not rest.startswith("#")
            found[key] = self._inline(rest, indent) if beside else self._below(indent, depth)
        self._ended(line, indent)
        return found

    def _below(self, indent: int, depth: int) -> JsonValue:
        """The value below a key. A list may have the same indentation as its key."""
        line = self._next()
        if line is not None and line.indent == indent and line.is_item:
            return self._items(indent, depth + 1)
        return self._block(indent, depth + 1)

    def _items(self, indent: int, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        while (line := self._next()) is not None and line.indent == indent and line.is_item:
            rest = line.text[1:].lstrip()
            if rest and not rest.startswith("#"):
                # The text after the dash is treated as a line indented to its column.
                column = indent + len(line.text) - len(rest)
                self._lines[self._at] = _Line(line.number, column, rest)
            else:
                self._at += 1
            found.append(self._block(indent, depth + 1))
        self._ended(line, indent)
        return found

    def _ended(self, line: _Line | None, indent: int) -> None:
        if line is not None and line.indent > indent:
            raise PlainYamlError("is indented deeper than the lines it follows", line.number)

    def _inline(self, first: str, indent: int) -> JsonValue:
        """A value that begins on the line of its key and may continue below, indented deeper."""
        header = _BLOCK_TEXT.fullmatch(first)
        if header is not None:
            return self._block_text(header, indent)
        lines = [first, *self._continued(indent)]
        if first[0] in "[{":
            closing = self._next()
            if closing is not None and closing.indent == indent and closing.text[0] in "]}":
                lines.append(closing.text)
                self._at += 1
            try:
                return Flow("\n".join(lines)).whole()
            except NotFlowError:
                return _plain(lines)
        if first[0] in "\"'":
            content = yaml_scalar.quoted("\n".join(lines))
            return _plain(lines) if content is None else content
        return _plain(lines)

    def _continued(self, indent: int) -> list[str]:
        start = end = self._at
        while end < len(self._lines):
            line = self._lines[end]
            if line.text and line.indent <= indent:
                break
            end += 1
            if line.text:
                self._at = end
        return [line.text for line in self._lines[start : self._at]]

    def _block_text(self, header: re.Match[str], indent: int) -> str:
        start = self._at
        margin = max(indent, 0) + int(header[3]) if header[3] else None
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text and line.indent <= indent:
                break
            if line.text or line.has_text_tab(indent):
                margin = _margin(line, indent) if margin is None else margin
                # A comment may be indented less than the text that it ends.
                if line.indent < margin and (header[3] or line.text.startswith("#")):
                    break
            self._at += 1
        taken = self._lines[start : self._at]
        if margin is None:
            margin = max((len(line.raw) for line in taken), default=0)
        lines = [_without_margin(line, margin) for line in taken]
        has_line_end = self._has_last_line_end or self._at < len(self._lines)
        if lines and not lines[-1] and not has_line_end:
            # Blanks at the end of the text are no line of their own.
            lines.pop()
            has_line_end = True
        body = "\n".join(lines) if header[1] == "|" else _folded_block(lines)
        chomp = header[2] or header[4]
        return _chomped(body, chomp if has_line_end else "-", _trailing_blanks(lines))


def _line(number: int, raw: str) -> _Line:
    blank = _INDENT.match(raw)
    indent = 0 if blank is None else len(blank[0].expandtabs(_TAB_COLUMNS))
    return _Line(number, indent, raw.strip(), raw)


def _margin(first: _Line, indent: int) -> int:
    """The indentation of a block text: the spaces of its first line; a tab is text after them."""
    spaces = len(first.raw) - len(first.raw.lstrip(" "))
    return spaces if spaces > indent else first.indent


def _without_margin(line: _Line, margin: int) -> str:
    """The line of a block text. Only indentation by tabs, which YAML forbids, is normalised."""
    spaces = len(line.raw) - len(line.raw.lstrip(" "))
    if spaces >= margin or not line.text:
        return line.raw[margin:]
    return " " * max(0, line.indent - margin) + line.raw.lstrip(" \t")


def _key(text: str) -> tuple[str, str] | None:
    """Split `key: value`, both stripped; None for any other line."""
    string = yaml_scalar.quoted_prefix(text)
    if string is not None:
        key, at = string
        rest = text[at:].lstrip()
        return (key, rest[1:].lstrip()) if rest.startswith(":") else None
    ends = [end for end in (text.find(": "), text.find(":\t")) if end > 0]
    if not ends and text.endswith(":"):
        ends = [len(text) - 1]
    if not ends or not text[: min(ends)].strip():
        return None
    return text[: min(ends)].rstrip(), text[min(ends) + 1 :].lstrip()


def _plain(lines: Sequence[str]) -> JsonValue:
    texts = [yaml_scalar.uncommented(line) for line in lines]
    if len(texts) == 1:
        return yaml_scalar.typed(texts[0])
    # Comment lines are dropped; empty lines end a paragraph.
    kept = [text for text, line in zip(texts, lines, strict=True) if text or not line]
    return yaml_scalar.folded(kept)


def _folded_block(lines: Sequence[str]) -> str:
    """Lines folded into a paragraph; lines that are indented further stay separate."""
    pieces: list[str] = []
    blanks, indented_before = 0, False
    for line in lines:
        if not line:
            blanks += 1
            continue
        indented = line.startswith((" ", "\t"))
        if not pieces:
            pieces.append("\n" * blanks)
        elif indented or indented_before:
            pieces.append("\n" * (blanks + 1))
        else:
            pieces.append("\n" * blanks if blanks else " ")
        pieces.append(line)
        blanks, indented_before = 0, indented
    return "".join(pieces)


def _trailing_blanks(lines: Sequence[str]) -> int:
    count = 0
    while count < len(lines) and not lines[-1 - count]:
        count += 1
    return count


def _chomped(body: str, chomp: str, blanks: int) -> str:
    """`body` with one line end; with `-` none, with `+` all of them."""
    text = body.rstrip("\n")
    if not text:
        return "\n" * blanks if chomp == "+" else ""
    if chomp == "-":
        return text
    return text + "\n" * (1 + blanks if chomp == "+" else 1)
