"""The plain text of an HTML page: its words in order, a line for each block.

Marks, links and pictures are not kept; core.web.html_markdown keeps them. What is never shown is
left out by core.web.html_tokens.
"""

import re
from collections.abc import Iterator
from typing import Final

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
"""Elements that begin on a line of their own, and whose end begins one."""

_SPACES: Final = re.compile(r"[ \t\n\r\f]+")
_CELLS: Final = frozenset({"td", "th"})


def to_text(page: str) -> str:
    """The words of `page`."""
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
            case _:
                pass
    lines += _lines(words, preformatted=preformatted > 0)
    return "\n".join(lines)


def collapse_spaces(text: str) -> str:
    """Every stretch of white space as one space; a non-breaking space stays as it is."""
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
