"""Cuts a page of lines from a text that arrives in chunks and may be larger than memory.

Lines are counted from one and end at a line feed; a carriage return before it is dropped. A very
long line is truncated, with a note. Nothing here reads a file.

Invariant: memory stays within one page and one chunk, whatever the lines look like.
"""

import codecs
from typing import Final

from perdure.core.limits import READ_BYTES_MAX, READ_LINE_CHARS_MAX
from perdure.schema.value import Value

# A character is at most four bytes; one more byte shows that the line is longer.
_LINE_BYTES_KEPT: Final = READ_LINE_CHARS_MAX * 4 + 1


class Page(Value, kw_only=True):
    text: str
    lines: int
    more: bool


class LinePager:
    """Feed chunks until `full`, then get the `page`. Feeding may raise UnicodeDecodeError."""

    def __init__(self, *, offset: int, limit: int) -> None:
        self._to_skip = offset - 1
        self._limit = limit
        self._lines: list[str] = []
        self._bytes = 0
        self._pending = bytearray()
        self._seen_lines = 0
        self._seen_tail = False
        self.full = False

    def feed(self, chunk: bytes) -> None:
        self._seen_lines += chunk.count(b"\n")
        self._seen_tail = not chunk.endswith(b"\n")
        rest = self._after_skipped(chunk)
        if rest is None:
            return
        *whole, tail = rest.split(b"\n")
        for line in whole:
            self._pend(line)
            self._take()
            if self.full:
                return
        self._pend(tail)

    def page(self) -> Page:
        """The page, after all chunks are fed or the page is full."""
        if self._pending and not self.full:
            self._take()
        return Page(text="\n".join(self._lines), lines=len(self._lines), more=self.full)

    @property
    def lines_seen(self) -> int:
        """The number of lines fed so far."""
        return self._seen_lines + self._seen_tail

    def _after_skipped(self, chunk: bytes) -> bytes | None:
        if not self._to_skip:
            return chunk
        breaks = chunk.count(b"\n")
        if breaks < self._to_skip:
            self._to_skip -= breaks
            return None
        rest = chunk.split(b"\n", self._to_skip)[-1]
        self._to_skip = 0
        return rest

    def _pend(self, piece: bytes) -> None:
        self._pending += piece[: _LINE_BYTES_KEPT - len(self._pending)]

    def _take(self) -> None:
        line = _decode_line(bytes(self._pending))
        self._pending.clear()
        size = len(line.encode()) + 1
        if len(self._lines) == self._limit or (self._lines and self._bytes + size > READ_BYTES_MAX):
            self.full = True
            return
        self._lines.append(line)
        self._bytes += size


def _decode_line(line: bytes) -> str:
    complete = len(line) < _LINE_BYTES_KEPT
    # The cut may split a character, which an incremental decoder leaves out.
    text = codecs.getincrementaldecoder("utf-8")().decode(line, final=complete)
    text = text.removesuffix("\r") if complete else text
    if len(text) <= READ_LINE_CHARS_MAX:
        return text
    return f"{text[:READ_LINE_CHARS_MAX]}... (line cut at {READ_LINE_CHARS_MAX} characters)"
