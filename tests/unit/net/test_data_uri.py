"""Bytes in an address, sound and not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.net import data_uri
from perdure.net.data_uri import DataUri


@given(st.binary(max_size=200), st.sampled_from(["image/png", "application/pdf", ""]))
def test_what_is_written_can_be_read(data: bytes, media_type: str) -> None:
    uri = data_uri.write(media_type, data)
    assert data_uri.read(uri) == DataUri(media_type, data)
    assert data_uri.type_of(uri) == media_type


@pytest.mark.parametrize(
    ("uri", "read"),
    [
        ("data:,x", DataUri("", b"x")),
        ("data:text/plain,a%20b,c", DataUri("text/plain", b"a b,c")),
        ("data:Image/PNG; charset=x ;BASE64,QQ==", DataUri("image/png", b"A")),
        ("data:image/png;base64,QQ%3D%3D", DataUri("image/png", b"A")),
        ("data:;base64,", DataUri("", b"")),
    ],
)
def test_every_spelling_is_read(uri: str, read: DataUri) -> None:
    assert data_uri.read(uri) == read


@pytest.mark.parametrize("uri", ["", "data:", "data:image/png", "http://h/a,b", ",data:", "x"])
def test_what_is_no_data_uri_has_no_type(uri: str) -> None:
    assert data_uri.read(uri) is None
    assert data_uri.type_of(uri) is None


@pytest.mark.parametrize("payload", ["!", "Q", "QQ=", "Q Q="])
def test_bytes_that_are_spoilt_are_none_at_all(payload: str) -> None:
    assert data_uri.read(f"data:image/png;base64,{payload}") is None
    assert data_uri.type_of(f"data:image/png;base64,{payload}") == "image/png"


@given(st.text(max_size=60))
def test_reading_never_fails(text: str) -> None:
    data_uri.read("data:" + text)
    data_uri.read(text)
