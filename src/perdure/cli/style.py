"""Styles of text on a terminal, and spans: pieces of text with a style."""

from enum import Enum
from typing import NamedTuple


class Style(Enum):
    """A way to emphasise text; the value is its SGR code."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    ITALIC = "3"
    UNDERLINE = "4"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"


class Span(NamedTuple):
    """A piece of text in one style."""

    text: str
    style: Style = Style.PLAIN


def plain_text(spans: list[Span]) -> str:
    """The text of spans without their styles."""
    return "".join(span.text for span in spans)
