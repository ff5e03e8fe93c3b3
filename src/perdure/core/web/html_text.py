"""The plain text of an HTML page: its words in order, a line for each block.

Formatting, links and pictures are dropped; core.web.html_markdown keeps them. Invisible elements
are dropped by core.web.html_tokens.
"""

import re
from collections.abc import Iterator
from typing import Final, assert_never

from perdure.core import limits
from perdure.core.web import html_tokens
from perdure.core.web.html_tokens import Close, Open, Text, Token
from perdure.schema.value import State

BLOCKS: Final = frozenset(
    {
        *(
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "caption",
            "center",
            "dd",
            "details",
        ),
        *("dialog", "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend"),
        *(
            "li",
            "listing",
            "main",
            "marquee",
            "menu",
            "nav",
            "ol",
            "optgroup",
            "option",
            "p",
            "pre",
        ),
        *("search", "section", "select", "summary", "table", "tbody", "textarea", "tfoot", "thead"),
        *("title", "tr", "ul", "xmp"),
    }
)
"""Elements that start and end on lines of their own."""
PREFORMATTED: Final = frozenset({"pre", "xmp", "listing"})

_LINE_STYLE: Final = re.compile(r"display\s*:\s*(?:block|flex|grid|table|list-item)")
_LINE_CLASSES: Final = frozenset({"line", "code-line", "token-line", "view-line"})
"""What highlighters call the element of one line; its style is elsewhere."""

_SPACES: Final = re.compile(r"[ \t\n\r\f]+")
BOXES: Final = frozenset({"button", "td", "th"})
"""Elements that stand beside others on a line, with a gap between."""


def to_text(page: str) -> str:
    """The text of `page`."""
    lines: list[str] = []
    words: list[str] = []
    code: CodeLines | None = None
    for token in html_tokens.tokens(page):
        match token:
            case Open(name) if name in PREFORMATTED and code is None:
                lines += _lines(words)
                code = CodeLines(name)
            case Close(name) if code is not None and name == code.element:
                lines += code.lines()
                code = None
            case _ if code is not None:
                code.take(token)
            case Text(text):
                words.append(collapse_spaces(text))
            case Open("br"):
                words.append("\n")
            case Open(name) | Close(name) if name in BLOCKS:
                lines += _lines(words)
            case Open(name) | Close(name) if name in BOXES:
                words.append(" ")
            case Open() | Close():
                pass
            case _:
                assert_never(token)
    lines += _lines(words) if code is None else code.lines()
    return "\n".join(lines)


class _OpenLine(State):
    """An element that is a line by its style or class, and how many of its name are open in it."""

    name: str
    nested: int = 0


class CodeLines:
    """The lines of an open preformatted element, named `element`.

    A line ends at a line break, and at the start and end of an element that a browser shows on
    lines of its own: highlighters put each line of a program into one.
    """

    def __init__(self, element: str) -> None:
        self.element = element
        self._words: list[str] = []
        self._opened_at = 0
        self._has_ended_line = False
        self._box_ended = False
        self._open_lines: list[_OpenLine] = []

    def take(self, token: Token) -> None:
        match token:
            case Text(text):
                # A line end after an element that ended its line already.
                shown = text.removeprefix("\n") if self._has_ended_line else text
                if shown:
                    self._append(shown)
                self._has_ended_line = False
            case Open("br"):
                self._words.append("\n")
            case Open(name) | Close(name) if name in BOXES:
                self._box_ended = True
            case Open(name) if name in BLOCKS or _is_line(token):
                self._end_line()
                self._opened_at = len(self._words)
                if name not in BLOCKS and len(self._open_lines) < limits.WEB_NESTING_MAX:
                    self._open_lines.append(_OpenLine(name))
            case Open(name) | Close(name) if self._open_lines and name == self._open_lines[-1].name:
                self._nest_line(1 if isinstance(token, Open) else -1)
            case Close(name) if name in BLOCKS and self._opened_at == len(self._words):
                # An element without content is an empty line.
                self._words.append("\n")
            case Close(name) if name in BLOCKS:
                self._has_ended_line = self._end_line()
            case _:
                pass

    def lines(self) -> list[str]:
        """The lines; empty ones at the start and the end are left out."""
        return "".join(self._words).strip("\n").split("\n")

    def _append(self, text: str) -> None:
        """Add text to the line; a blank keeps it apart from another box."""
        is_glued = self._words and not self._words[-1][-1].isspace() and not text[0].isspace()
        if self._box_ended and is_glued:
            self._words.append(" ")
        self._words.append(text)
        self._box_ended = False

    def _nest_line(self, more: int) -> None:
        """Count the elements of the same name in the open line, which ends with the last one."""
        line = self._open_lines[-1]
        line.nested += more
        if line.nested < 0:
            self._open_lines.pop()
            self._has_ended_line = self._end_line()

    def _end_line(self) -> bool:
        """End the line; returns whether that was left to do."""
        is_open = bool(self._words) and not self._words[-1].endswith("\n")
        if is_open:
            self._words.append("\n")
        return is_open


def collapse_spaces(text: str) -> str:
    """`text` with white space collapsed to single spaces; non-breaking spaces stay."""
    return _SPACES.sub(" ", text)


def _is_line(tag: Open) -> bool:
    """Whether an element of a program is a line of its own by its style or class."""
    if not tag.attributes:
        return False
    classes = (html_tokens.attribute(tag, "class") or "").split()
    style = html_tokens.attribute(tag, "style") or ""
    return not _LINE_CLASSES.isdisjoint(classes) or _LINE_STYLE.search(style) is not None


def _lines(words: list[str]) -> Iterator[str]:
    text = "".join(words)
    words.clear()
    for line in text.split("\n"):
        shown = collapse_spaces(line).strip()
        if shown:
            yield shown
