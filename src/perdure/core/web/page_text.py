"""Decodes web pages: whether a page is text, and in which encoding.

A byte order mark counts first, then the header's charset, then the page's own meta tag; otherwise
it is UTF-8. Only web encodings are supported: some of Python's codecs take unbounded time on
hostile bytes, and some are not text encodings.

Invariant: decoding never fails; invalid bytes and NUL become U+FFFD.
"""

import codecs
import re
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = frozenset(
    f"application/{name}"
    for name in (
        *("json", "xml", "javascript", "ecmascript", "typescript", "yaml", "x-yaml", "toml"),
        *("sql", "graphql", "x-sh", "x-ndjson", "jsonl", "x-www-form-urlencoded", "rtf"),
        *("x-javascript", "x-httpd-php", "x-python-code", "markdown", "x-tex"),
    )
)
_CHARSET: Final = lazy_pattern(r"charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)
_META: Final = lazy_pattern(
    rb"<meta[^>]{0,400}?charset\s*+=\s*+[\"']?\s*+([\w.:+-]{1,40})", re.IGNORECASE
)
_META_BYTES: Final = 4 * 1024
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# As browsers do, Latin-1 and ASCII are read as the Windows encoding that contains them.
_ENCODINGS: Final = {
    **dict.fromkeys(("utf-8", "utf8"), "utf-8"),
    **dict.fromkeys(("utf-16", "utf-16le"), "utf-16-le"),
    "utf-16be": "utf-16-be",
    **dict.fromkeys(("us-ascii", "ascii", "iso-8859-1", "latin1", "iso8859-1"), "cp1252"),
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (*range(2, 9), 10, 13, 14, 15, 16)},
    "iso-8859-9": "cp1254",
    **{f"windows-{page}": f"cp{page}" for page in (874, *range(1250, 1259))},
    **{name: name for name in ("koi8-r", "koi8-u", "big5", "euc-jp", "euc-kr", "gb18030")},
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("ibm866", "cp866"), "cp866"),
    "macintosh": "mac-roman",
    "iso-2022-jp": "iso2022-jp",
}


class ContentType(Value):
    media_type: str
    """In lower case and without parameters; empty if the response has none."""
    charset: str | None = None

    @property
    def is_html(self) -> bool:
        return self.media_type in _HTML

    @property
    def is_text(self) -> bool:
        kind = self.media_type
        if kind.startswith("image/"):
            return False
        suffixed = kind.endswith(("+json", "+xml", "+yaml", "+text"))
        return kind.startswith("text/") or kind in _TEXT or kind in _HTML or suffixed


def content_type(header: str) -> ContentType:
    """Parse a Content-Type header; never fails."""
    media_type, _, parameters = header.partition(";")
    named = _CHARSET.search(parameters)
    return ContentType(media_type.strip().lower(), named and named[1].lower())


def sniff(body: bytes) -> ContentType | None:
    """The content type of a body without a header; None if it is not text."""
    if b"\0" in body:
        return None
    try:
        start = body.decode()[:512].lstrip("\N{ZERO WIDTH NO-BREAK SPACE} \t\r\n").lower()
    except UnicodeDecodeError:
        return None
    is_html = start.startswith(("<!doctype html", "<html"))
    return ContentType("text/html" if is_html else "text/plain")


def decode(body: bytes, kind: ContentType) -> str:
    """Decode `body` to text."""
    encoding = _ENCODINGS.get(kind.charset or "")
    for mark, meant in _MARKS:
        if body.startswith(mark):
            body, encoding = body[len(mark) :], meant
    if encoding is None and kind.is_html:
        named = _META.search(body[:_META_BYTES])
        encoding = named and _ENCODINGS.get(named[1].decode("ascii").lower())
    return body.decode(encoding or "utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
