"""Whatever is attached, a request can be sent."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.llm.encoding import attachment
from perdure.llm.encoding.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.message import MediaPart


def uri(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("media_type", sorted(attachment.IMAGE_TYPES))
def test_images_are_sent_inline(media_type: str) -> None:
    found = attachment.classify(MediaPart(media_type, uri(media_type, b"x")))
    assert found == ImageAttachment(media_type=media_type, url=uri(media_type, b"x"))


def test_an_image_on_the_network_is_sent_by_its_address() -> None:
    found = attachment.classify(MediaPart("image/JPG", "https://host/a.jpg"))
    assert found == ImageAttachment(media_type="image/jpeg", url="https://host/a.jpg")


@pytest.mark.parametrize(
    ("media", "text"),
    [
        (MediaPart("text/plain", "data:,a%26b"), "a&b"),
        (MediaPart("text/x-python", "data:text/x-python;charset=utf-8;base64,eCA9IDE="), "x = 1"),
        (MediaPart("", "data:,hi"), "hi"),
        (MediaPart("application/ld+json", "data:;base64,e30="), "{}"),
        (MediaPart("text/plain", uri("text/plain", b"\xef\xbb\xbfbom")), "bom"),
    ],
)
def test_text_files_become_text(media: MediaPart, text: str) -> None:
    assert attachment.classify(media) == TextAttachment(text)


@pytest.mark.parametrize(
    ("media", "why"),
    [
        (MediaPart("application/pdf", uri("application/pdf", b"x")), "cannot read this type"),
        (MediaPart("image/png", uri("image/gif", b"x")), "says image/gif"),
        (MediaPart("image/png", "data:image/png;base64,!!!"), "malformed"),
        (MediaPart("image/png", "data:image/png;base64"), "malformed"),
        (MediaPart("image/png", "data:image/png;base64,"), "empty"),
        (MediaPart("text/plain", uri("text/plain", b"\xff\xfe")), "not UTF-8"),
        (MediaPart("text/html", "https://host/"), "not available"),
        (MediaPart("image/png", "data:image/png;base64," + "A" * 29_000_000), "too large"),
    ],
)
def test_what_cannot_be_sent_leaves_a_note(media: MediaPart, why: str) -> None:
    found = attachment.classify(media)
    assert isinstance(found, OmittedAttachment)
    assert why in found.note


def test_a_note_stays_on_one_short_line() -> None:
    found = attachment.classify(MediaPart("a\nb", "file:///x", "n\r\n" * 500))
    assert isinstance(found, OmittedAttachment)
    assert "\n" not in found.note
    assert len(found.note) < 400


@given(st.text(), st.text(), st.text() | st.none())
def test_nothing_attached_ever_raises(media_type: str, data: str, name: str | None) -> None:
    attachment.classify(MediaPart(media_type, data, name))
    attachment.classify(MediaPart(media_type, f"data:{data}", name))
