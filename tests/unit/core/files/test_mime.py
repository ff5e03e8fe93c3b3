"""Media types by name: what an attachment is, and what the server serves a file as."""

import pytest

from perdure.core.files import mime


@pytest.mark.parametrize(
    ("uri", "name", "type"),
    [
        ("data:image/PNG;base64,AAAA", None, "image/png"),
        ("data:;base64,AAAA", None, "text/plain"),
        ("data:", None, "text/plain"),
        ("file:///w/src/", None, "application/x-directory"),
        ("file:///w/a.MD", None, "text/markdown"),
        ("https://h/a.png?size=2#top", None, "image/png"),
        ("https://h/download", "report.pdf", "application/pdf"),
        ("file:///w/go", None, "application/octet-stream"),
        ("file:///w/c", "md", "application/octet-stream"),
        ("file:///w/a.tar.gz", None, "application/octet-stream"),
        ("http://[broken", None, "application/octet-stream"),
        ("", None, "application/octet-stream"),
    ],
)
def test_the_media_type_follows_from_the_name(uri: str, name: str | None, type: str) -> None:
    assert mime.attachment_type(uri, name) == type


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("a.txt", "text/plain"),
        ("a/B.HTML", "text/plain"),
        ("x.svg", "text/plain"),
        ("x.png", "image/png"),
        (".git/config", "application/octet-stream"),
        (".txt", "application/octet-stream"),
        ("a.txt/b", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_nothing_is_served_as_a_page(path: str, type: str) -> None:
    assert mime.served_type(path) == type
