"""The plain text of an HTML page: its words in order, a line for each block.

Formatting, links and pictures are dropped; core.web.html_markdown keeps them. Invisible elements
are dropped by core.web.html_tokens.
"""

import re
from collections.abc import Iterator
from typing import Final, assert_never

from perdure.core.web import html_tokens
from perdure.core.web.html_tokens import Close, Open, Text

BLOCKS: Final = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "dd", "details", "dialog", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3"),
        *("h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "legend", "li", "main"),
        *("nav", "ol", "option", "p", "pre", "section", "select", "summary", "table", "tbody"),
        *("textarea", "tfoot", "thead", "title", "tr", "ul"),
    }
)
"""Elements that start and end on lines of their own."""

_SPACES: Final = re.compile(r"[ \t\n\r\f]+")
_CELLS: Final = frozenset({"td", "th"})


def to_text(page: str) -> str:
    """The text of `page`."""
    lines: list[str] = []
    words: list[str] = []
    preformatted = 0
    for token in html_tokens.tokens(page):
        match token:
            case Text(text):
                words.append(text if preformatted else collapse_spaces(text))
            case Open("br"):
                words.append("\n")
            case Open("pre"):
                lines += _lines(words)
                preformatted += 1
            case Close("pre"):
                lines += _lines(words, preformatted=preformatted > 0)
                preformatted = max(0, preformatted - 1)
            case Open(name) | Close(name) if name in BLOCKS and not preformatted:
                lines += _lines(words)
            case Open(name) if name in _CELLS:
                words.append(" ")
            case Open() | Close():
                pass
            case _:
                assert_never(token)
    lines += _lines(words, preformatted=preformatted > 0)
    return "\n".join(lines)


def collapse_spaces(text: str) -> str:
    """`text` with white space collapsed to single spaces; non-breaking spaces stay."""
    return _SPACES.sub(" ", text)


def _lines(words: list[str], *, preformatted: bool = False) -> Iterator[str]:
    text = "".join(words)
    words.clear()
    if preformatted:
        yield from text.strip("\n").split("\n")
        return
    for line in text.split("\n"):
        shown = collapse_spaces(line).strip()
        if shown:
            yield shown
