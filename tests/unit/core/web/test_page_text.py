"""Whether a page is text, and in which characters it is written."""

import codecs
import time

import pytest

from perdure.core.web import page_text
from perdure.core.web.page_text import ContentType


@pytest.mark.parametrize(
    ("header", "is_text", "is_html"),
    [
        ("text/html; charset=utf-8", True, True),
        ("TEXT/HTML", True, True),
        ("application/xhtml+xml", True, True),
        ("text/plain", True, False),
        ("text/markdown;variant=GFM", True, False),
        ("application/json", True, False),
        ("application/ld+json", True, False),
        ("application/rss+xml", True, False),
        ("image/png", False, False),
        ("image/svg+xml", False, False),
        ("application/octet-stream", False, False),
        ("application/pdf", False, False),
        ("audio/mpeg", False, False),
        ("text", False, False),
        (";;;", False, False),
    ],
)
def test_the_content_type_says_what_a_page_is(header: str, *, is_text: bool, is_html: bool) -> None:
    kind = page_text.content_type(header)
    assert (kind.is_text, kind.is_html) == (is_text, is_html)


@pytest.mark.parametrize(
    ("header", "body", "text"),
    [
        ("text/plain; charset=utf-8", "gr\u00fcn".encode(), "gr\u00fcn"),
        ("text/plain", "gr\u00fcn".encode(), "gr\u00fcn"),
        ("text/plain; charset=ISO-8859-1", "gr\u00fcn\u20ac".encode("cp1252"), "gr\u00fcn\u20ac"),
        ('text/html; charset="windows-1251"', "\u043f\u0440".encode("cp1251"), "\u043f\u0440"),
        ("text/plain; charset=Shift_JIS", "\u65e5".encode("shift_jis"), "\u65e5"),
        ("text/plain; charset=gb2312", "\u4e2d".encode("gbk"), "\u4e2d"),
        ("text/html", b"<meta charset=iso-8859-1>gr\xfcn", "<meta charset=iso-8859-1>gr\u00fcn"),
        (
            "text/html",
            b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xd0",
            "<meta http-equiv=x content='text/html; charset=koi8-r'>\u043f",
        ),
        ("text/plain", b"<meta charset=iso-8859-1>\xfc", "<meta charset=iso-8859-1>\ufffd"),
        ("text/plain; charset=latin1", codecs.BOM_UTF8 + "\u00fc".encode(), "\u00fc"),
        ("text/plain", codecs.BOM_UTF16_LE + "\u00fc".encode("utf-16-le"), "\u00fc"),
        ("text/plain; charset=utf-8", b"a\xff\xfe\x00b", "a\ufffd\ufffd\ufffdb"),
        ("text/plain; charset=utf-8", b"cut \xe2\x82", "cut \ufffd"),
        ("text/plain; charset=no-such-thing", b"ok", "ok"),
    ],
)
def test_a_page_is_read_in_the_characters_it_was_written_in(
    header: str, body: bytes, text: str
) -> None:
    assert page_text.decode(body, page_text.content_type(header)) == text


@pytest.mark.parametrize(
    "name",
    ["zlib", "hex", "rot13", "bz2", "base64", "idna", "punycode", "unicode_escape", "utf-7"],
)
def test_encodings_that_are_none_of_the_web_are_not_used(name: str) -> None:
    body = b"+AGE- a-b \\u0041 " + b"-" * 200_000 + b"9" * 200_000
    begun = time.process_time()
    kind = page_text.content_type(f"text/plain; charset={name}")
    assert page_text.decode(body, kind) == body.decode()
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"words", ContentType("text/plain")),
        (b"", ContentType("text/plain")),
        (b" \n<!DOCTYPE HTML><p>", ContentType("text/html")),
        (codecs.BOM_UTF8 + b"<html>", ContentType("text/html")),
        (b"a\0b", None),
        (b"\x89PNG\xff", None),
    ],
)
def test_a_page_without_a_type_is_looked_at(body: bytes, kind: ContentType | None) -> None:
    assert page_text.sniff(body) == kind
