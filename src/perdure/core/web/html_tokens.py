"""HTML as a stream of tokens: text, opening tags and closing tags. No tree is built.

Scripts, styles, embedded content and comments are dropped with everything in them. Entities are
replaced by their characters. Inside a title, a text field or an `xmp` tags are text.

Invariant: the work is linear in the length of any page. The parser of the standard library is
quadratic for some inputs.
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
# `<!-->` and `<!--->` are whole comments; the mistake `--!>` ends one, but not right after `<!`.
_COMMENT_END: Final = re.compile(r"-->|(?<!<!)--!>")
_LONG_REFERENCE: Final = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

_DROPPED: Final = frozenset(
    {"script", "style", "noscript", "template", "iframe", "object", "svg", "canvas", "math"}
)
_RUNS_TO_THE_END: Final = frozenset({"script", "style"})
"""Without a closing tag these extend to the end of the page, as in a browser."""


_TEXT_ONLY: Final = frozenset({"textarea", "title", "xmp"})
"""Up to their closing tag these contain no tags."""


class Text(Value):
    text: str


class Open(Value):
    name: str
    attributes: str = ""
    """As written; see `attribute`."""


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
            # Browsers take this mistake for a line break.
            yield Open(name) if name == "br" else Close(name)
        elif name not in _DROPPED:
            yield Open(name, page[tag.end() : at - 1])
            if name in _TEXT_ONLY and name not in unclosed:
                end = _after_dropped(page, at, name, unclosed)
                if end > at:
                    yield Text(page[at:end] if name == "xmp" else _characters(page[at:end]))
                at = end
        elif name not in unclosed:
            at = _after_dropped(page, at, name, unclosed)


def attribute(tag: Open, name: str) -> str | None:
    """The value of an attribute; None if the tag does not have it."""
    for found in _ATTRIBUTE.finditer(tag.attributes, 0, limits.WEB_ATTRIBUTES_CHARS_MAX):
        if found[1].lower() == name:
            value = found[2] or ""
            quoted = value[:1] in {'"', "'"} and len(value) > 1
            return _characters(value[1:-1] if quoted else value)
    return None


def _after_tag(page: str, at: int) -> int:
    """The position after the end of the tag; a `>` inside a quoted value does not end it."""
    while stop := _TAG_STOP.search(page, at):
        if stop[1] is None:
            return stop.end()
        closing = page.find(stop[1], stop.end())
        # An unclosed quote is ignored. This search fails at most once per kind of quote.
        at = stop.end() if closing < 0 else closing + 1
    return len(page) + 1


def _after_declaration(page: str, start: int) -> int:
    if page.startswith("<!--", start):
        ending = _COMMENT_END.search(page, start + 2)
        return len(page) if ending is None else ending.end()
    end = page.find(">", start + 2)
    return len(page) if end < 0 else end + 1


def _after_dropped(page: str, at: int, name: str, unclosed: set[str]) -> int:
    closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(page, at)
    if closing is not None:
        return closing.start()
    unclosed.add(name)
    return len(page) if name in _RUNS_TO_THE_END else at


def _characters(text: str) -> str:
    if "&" not in text:
        return text
    # Very long numeric references are not characters, and Python refuses such numbers.
    return html.unescape(_LONG_REFERENCE.sub(_REPLACEMENT, text))
