"""HTML as a stream of tokens: text, tags that open, tags that close. No tree is built.

What a page shows is in its text; what runs, styles or embeds is dropped here with all it contains,
and so are comments. Characters are what entities stand for.

Invariant: the work grows with the length of the page and with nothing else, whatever the page is.
The parser of the standard library has inputs for which it grows with the square.
"""

import html
import re
from collections.abc import Iterator
from typing import Final

from perdure.core import limits
from perdure.schema.value import Value

_MARKUP: Final = re.compile(r"<(?=[a-zA-Z/!?])")
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_TAG_STOP: Final = re.compile(r">|=\s*([\"'])")
_ATTRIBUTE: Final = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>]*))?")
_LONG_REFERENCE: Final = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_DROPPED: Final = frozenset(
    {"script", "style", "noscript", "template", "iframe", "object", "svg", "canvas", "math"}
)
_RUNS_TO_THE_END: Final = frozenset({"script", "style"})
"""Without a closing tag these swallow the rest of the page, in a browser as well."""


class Text(Value):
    text: str


class Open(Value):
    name: str
    attributes: str = ""
    """As they were written; see `attribute`."""


class Close(Value):
    name: str


Token = Text | Open | Close


def tokens(page: str) -> Iterator[Token]:
    """The tokens of `page`, in order."""
    unclosed: set[str] = set()
    at = 0
    while at < len(page):
        found = _MARKUP.search(page, at)
        start = len(page) if found is None else found.start()
        if start > at:
            yield Text(_characters(page[at:start]))
        if found is None:
            return
        tag = _TAG.match(page, start)
        at = _after_tag(page, tag.end()) if tag else _after_declaration(page, start)
        if tag is None or at > len(page):
            continue
        name = tag[2].lower()
        if tag[1]:
            yield Close(name)
        elif name not in _DROPPED:
            yield Open(name, page[tag.end() : at - 1])
        elif name not in unclosed:
            at = _after_dropped(page, at, name, unclosed)


def attribute(tag: Open, name: str) -> str | None:
    """The value of an attribute; None where the tag does not have it."""
    for found in _ATTRIBUTE.finditer(tag.attributes, 0, limits.WEB_ATTRIBUTES_CHARS_MAX):
        if found[1].lower() == name:
            value = found[2] or ""
            quoted = value[:1] in {'"', "'"} and len(value) > 1
            return _characters(value[1:-1] if quoted else value)
    return None


def _after_tag(page: str, at: int) -> int:
    """The position after the tag's end; a `>` inside a quoted value is not it."""
    while stop := _TAG_STOP.search(page, at):
        if stop[1] is None:
            return stop.end()
        closing = page.find(stop[1], stop.end())
        # A quote that never closes does not count. This search fails once for each kind of quote.
        at = stop.end() if closing < 0 else closing + 1
    return len(page) + 1


def _after_declaration(page: str, start: int) -> int:
    comment = page.startswith("<!--", start)
    ending = "-->" if comment else ">"
    # `<!-->` is a comment, and it is over.
    end = page.find(ending, start + 2)
    return len(page) if end < 0 else end + len(ending)


def _after_dropped(page: str, at: int, name: str, unclosed: set[str]) -> int:
    closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(page, at)
    if closing is not None:
        return closing.start()
    unclosed.add(name)
    return len(page) if name in _RUNS_TO_THE_END else at


def _characters(text: str) -> str:
    if "&" not in text:
        return text
    # A reference of a million digits is no character, and a number too long for Python.
    return html.unescape(_LONG_REFERENCE.sub(_REPLACEMENT, text))
