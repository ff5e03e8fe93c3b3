"""Markdown as styled text, while it arrives.

Headings, lists, quotes, rules, code and emphasis are shown; everything else stays as written. A
link shows its address, so that it cannot hide one. Text is given out as soon as it is certain how
it is meant: at the latest at the end of its line.
"""

import re
from typing import Final

from perdure.cli.style import Span, Style

_INLINE_CHARS_MAX: Final = 400
"""A mark that is not closed within this many characters is taken as a character."""
_UNDECIDED: Final = re.compile(
    r" {0,12}(?:#{0,6}|`{1,2}|~{1,2}|\+|[-*_][-*_ ]{0,80}|\d{1,3}[.)]?|>)?"
)
"""The beginning of a line that may become anything."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]{0,100})")
_HEADING: Final = re.compile(r" {0,3}(#{1,6}) +")
_BULLET: Final = re.compile(r"( {0,12})[-*+] +")
_NUMBER: Final = re.compile(r"( {0,12}\d{1,3}[.)]) +")
_QUOTE: Final = re.compile(r" {0,3}> ?")
_RULE: Final = re.compile(r" {0,3}(?:-[ -]{2,}|\*[ *]{2,}|_[ _]{2,})")
_MARK: Final = re.compile(r"[`*_\[\\]")
_CODE: Final = re.compile(r"(`{1,3})([^`\n]{1,400})\1")
_STRONG: Final = re.compile(
    r"\*\*(?=\S)([^*\n]{1,400})(?<=\S)\*\*|__(?=\S)([^_\n]{1,400})(?<=\S)__"
)
_EMPHASIS: Final = re.compile(
    r"\*(?=[^\s*])([^*\n]{1,400})(?<=\S)\*(?!\*)|_(?=[^\s_])([^_\n]{1,400})(?<=\S)_(?!\w)"
)
_LINK: Final = re.compile(r"\[([^\]\n]{1,200})\]\(([^)\s]{1,300})\)")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")


class MarkdownText:
    """Renders one text that arrives in pieces."""

    def __init__(self) -> None:
        self._line: str = ""
        """What has arrived of the current line and is not given out."""
        self._base: Style | None = None
        """The style of the current line; None until its kind is known."""
        self._before: str = ""
        """The last character of the current line that was given out."""
        self._fence: str | None = None
        """The mark that ends the current block of code."""

    def feed(self, text: str) -> list[Span]:
        """What can be shown now."""
        spans: list[Span] = []
        *whole, rest = text.split("\n")
        for piece in whole:
            self._line += piece
            spans += self._end_line("\n")
        self._line += rest
        return [*spans, *self._advance()]

    def finish(self) -> list[Span]:
        """What is left at the end of the text."""
        return self._end_line("") if self._line or self._base is not None else []

    def _advance(self) -> list[Span]:
        """Give out what is certain of a line that is not complete."""
        if self._fence is not None or not self._line:
            return []
        spans: list[Span] = []
        if self._base is None:
            if _UNDECIDED.fullmatch(self._line) or _FENCE.match(self._line):
                return []
            spans = self._begin_line()
        return [*spans, *self._take_inline(is_complete=False)]

    def _end_line(self, newline: str) -> list[Span]:
        line = self._line
        if self._base is None and (code := self._end_code_line(line)) is not None:
            self._line = ""
            return [*code, Span(newline)] if code else []
        spans = self._begin_line() if self._base is None else []
        spans += self._take_inline(is_complete=True)
        self._line, self._base, self._before = "", None, ""
        return [*spans, Span(newline)]

    def _end_code_line(self, line: str) -> list[Span] | None:
        """The line if it is code or the mark of a block of code."""
        mark = _FENCE.match(line)
        if self._fence is None:
            if mark is None:
                return None
            self._fence = mark[1]
            return [Span(f"  {mark[2].strip()}", Style.DIM)] if mark[2].strip() else []
        if mark is not None and mark[1].startswith(self._fence) and not mark[2].strip():
            self._fence = None
            return []
        return [Span(f"  {line}", Style.CYAN)]

    def _begin_line(self) -> list[Span]:
        """Decide what kind of line it is; give out its mark."""
        line, self._base = self._line, Style.PLAIN
        if _RULE.fullmatch(line):
            self._line = ""
            return [Span("-" * 20, Style.DIM)]
        if match := _HEADING.match(line):
            self._base, self._line = Style.BOLD, line[match.end() :]
            return []
        if match := _BULLET.match(line):
            self._line = line[match.end() :]
            return [Span(f"{match[1]}- ", Style.CYAN)]
        if match := _NUMBER.match(line):
            self._line = line[match.end() :]
            return [Span(f"{match[1]} ", Style.CYAN)]
        if match := _QUOTE.match(line):
            self._base, self._line = Style.DIM, line[match.end() :]
            return [Span("| ", Style.DIM)]
        return []

    def _take_inline(self, *, is_complete: bool) -> list[Span]:
        base = self._base or Style.PLAIN
        text, at = self._line, 0
        spans: list[Span] = []
        while at < len(text):
            mark = _MARK.search(text, at)
            if mark is None:
                spans.append(Span(text[at:], base))
                at = len(text)
                break
            if mark.start() > at:
                spans.append(Span(text[at : mark.start()], base))
                at = mark.start()
            before = text[at - 1] if at else self._before
            found = _match_inline(text, at, base, before=before)
            # What follows may change what a mark at the end means: `*1*` and then `*`.
            is_open = found is None or found[1] == len(text)
            if is_open and not is_complete and len(text) - at < _INLINE_CHARS_MAX:
                break
            if found is None:
                spans.append(Span(text[at], base))
                at += 1
            else:
                styled, at = found
                spans += styled
        self._before = text[at - 1] if at else self._before
        self._line = text[at:]
        return spans


def _match_inline(text: str, at: int, base: Style, *, before: str) -> tuple[list[Span], int] | None:
    """The styled text of the mark at `at`, and where it ends; None if it is not closed."""
    if match := _ESCAPE.match(text, at):
        return [Span(match[1], base)], match.end()
    if match := _CODE.match(text, at):
        return [Span(match[2], Style.CYAN)], match.end()
    if match := _STRONG.match(text, at):
        return [Span(match[1] or match[2], Style.BOLD)], match.end()
    if text[at] == "_" and (before.isalnum() or before == "_"):
        # Inside a word, as in a name of a program.
        return [Span("_", base)], at + 1
    if (match := _EMPHASIS.match(text, at)) and not text.startswith(("**", "__"), at):
        return [Span(match[1] or match[2], Style.ITALIC)], match.end()
    if match := _LINK.match(text, at):
        return [Span(match[1], Style.UNDERLINE), Span(f" ({match[2]})", Style.DIM)], match.end()
    return None
