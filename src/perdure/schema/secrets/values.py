"""Where a value ends: in quotes, in a query, in an element, on a line, in the middle of a text.

What stands around a value decides. In the middle of a line a value ends at a blank; at the start
of a line of its own, as in YAML, INI and properties files, it goes to the end of the line.

Invariant: finding the end of a value takes time in proportion to the value.
"""

import re
from typing import Final, Literal

from perdure.schema.value import Value

REDACTED: Final = "[redacted]"

Span = tuple[int, int]
Place = Literal["field", "word", "query", "encoded", "element", "line", "header"]

_QUOTES: Final = "\"'`"
_OPENING: Final = re.compile(r"(?:[bBrRuUfF@$]{1,2}(?=\\*[\"'`]))?(\\*+)(\"{3}|'{3}|[\"'`])")
_CLOSING: Final = {quote: re.compile(rf"(?<!\\)(\\*+){quote}") for quote in _QUOTES}
_LINE_END: Final = re.compile(r"[\r\n]")

# What separates this value from the next field: `, name=`, `; name=`, `&name=`.
_NEXT: Final = r"\s{0,4}[\"']?[\w.-]{1,60}[\"']?\s?[=:]"
_INNER: Final = (
    rf"[^\s\"'`,;&<]|,(?!\s|\Z|[\"'\]}})]|{_NEXT})|;(?!\s|\Z|[\"']|{_NEXT})|&(?!\s|\Z|[&]|[\w.-]{{1,60}}=)"
    r"|<(?![/!?A-Za-z])"
)
# After a blank: another field, an option, a command with options, an operator, a comment.
_WORDS_AFTER: Final = r"[\w.-]{1,60}\s?[=:]|--?\w|[\w./-]{1,60}[ \t]{1,8}--?\w|&&|\||\#|[\r\n]|\Z"
_UNQUOTED: Final[dict[Place, re.Pattern[str]]] = {
    "field": re.compile(rf"(?:{_INNER})++"),
    "word": re.compile(r"(?:[^\s\"'`\\]|\\.)++", re.DOTALL),
    "query": re.compile(r"[^\s&\"'`<>#\\]++"),
    "encoded": re.compile(r"(?:[^\s&\"'<>%]|%(?!26|22|2[cC]|7[dD]|0[aAdD])[0-9A-Fa-f]{2})++"),
    "element": re.compile(r"<!\[CDATA\[[^\]]++|[^<]++"),
    "line": re.compile(rf"(?:{_INNER}|[\"'`]|[ \t]{{1,40}}+(?!{_WORDS_AFTER}))++"),
    "header": re.compile(r"(?:[^\r\n\"'`=]|=(?:\s?(?:\"[^\"\r\n]*+\"?|'[^'\r\n]*+'?))?)++"),
}
_SCHEME: Final = re.compile(
    r"(?i:bearer|basic|digest|token|negotiate|apikey|ssws|aws4-hmac-sha256)\s{1,4}(?=\S)"
)
_TRAILING: Final = ".,;:!?"
_BRACKETS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}
_SHELL_QUOTE: Final = "\"'\"'"


def find_value(text: str, at: int, place: Place, limit: int | None = None) -> Span:
    """The span of the value that begins at `at`, without its quotes; empty if there is none.

    It is cut at `limit`.
    """
    limit = len(text) if limit is None else min(limit, len(text))
    if place not in {"element", "header"} and (opening := _OPENING.match(text, at)) is not None:
        return opening.end(), max(opening.end(), _quoted_end(text, opening, limit))
    found = _UNQUOTED[place].match(text, at, limit)
    if found is None:
        return at, at
    end = found.end()
    if place == "field" and (scheme := _SCHEME.match(text, at)) is not None:
        found = _UNQUOTED[place].match(text, scheme.end(), limit)
        end = end if found is None else found.end()
    if text[end - 1] == "(" and (opening := _OPENING.match(text, end)) is not None:
        # A constructor around the value: `SecretStr('x')`.
        end = _closing(text, opening.end(), opening[1] + opening[2][0], limit).end
        return at, end + 1 if text.startswith(")", end) else end
    return at, end if place == "word" else _without_trailing(text, at, end, place)


def find_closing(text: str, at: int, depth: int, quote: str) -> int:
    """Where quotes that were opened before `at` close; each has `depth` backslashes before it."""
    return _closing(text, at, "\\" * depth + quote, len(text)).start


def find_line_end(text: str, at: int, limit: int | None = None) -> int:
    """Where the line of the character at `at` ends; at most `limit`."""
    limit = len(text) if limit is None else min(limit, len(text))
    found = _LINE_END.search(text, at, limit)
    return limit if found is None else found.start()


def find_block_end(text: str, at: int, indent: int) -> int:
    """Where the lines end that follow the line at `at` and are indented deeper than `indent`."""
    end = find_line_end(text, at)
    while end < len(text):
        start = end + 1
        line_end = find_line_end(text, start)
        line = text[start:line_end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        end = line_end
    return end


class _Closing(Value):
    """Where quotes close: the end of their content and their own."""

    start: int
    end: int


def _closing(text: str, at: int, quote: str, limit: int) -> _Closing:
    depth = len(quote) - 1
    for found in _CLOSING[quote[-1]].finditer(text, at, limit):
        # In quotes inside of quotes a backslash is doubled, and so is its own escape.
        more = len(found[1]) - depth
        if more >= 0 and more % (2 * (depth + 1)) == 0:
            return _Closing(found.start() + more, found.end())
    return _Closing(limit, limit)


def _quoted_end(text: str, opening: re.Match[str], limit: int) -> int:
    depth, quote = len(opening[1]), opening[2]
    if len(quote) > 1:
        end = text.find(quote, opening.end(), limit)
        return limit if end < 0 else end
    closing = _closing(text, opening.end(), opening[1] + quote, limit)
    while not depth and closing.end < limit:
        if text[closing.end] == quote:
            # Doubled inside of quotes, or three of them.
            closing = _closing(text, closing.end + 1, quote, limit)
        elif quote == "'" and text.startswith(_SHELL_QUOTE, closing.end):
            closing = _closing(text, closing.end + len(_SHELL_QUOTE), quote, limit)
        else:
            break
    return closing.start


def _without_trailing(text: str, at: int, end: int, place: Place) -> int:
    """The end without the punctuation of the sentence or the brackets around the value."""
    punctuation = "" if place == "line" else _TRAILING
    closed = {
        closing: text.count(closing, at, end) - text.count(opening, at, end)
        for closing, opening in _BRACKETS.items()
    }
    while end > at:
        last = text[end - 1]
        if closed.get(last, 0) > 0:
            closed[last] -= 1
        elif last not in punctuation and not last.isspace():
            break
        end -= 1
    return end
