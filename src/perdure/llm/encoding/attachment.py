"""What an attached file is to a model: an image, text to inline, or a note that it was left out.

An attachment stays in the conversation for good, so one that a provider would refuse must never
be sent: it would fail every later turn. Nothing is fetched here and no file is read.

Invariant: `classify` has an answer for every media part and never raises.
"""

import base64
from typing import Final

from perdure.llm.message import MediaPart
from perdure.net import data_uri
from perdure.schema.value import Value

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MEDIA_ENCODED_CHARS_MAX: Final = 28 * 1024 * 1024
MEDIA_DECODED_BYTES_MAX: Final = 20 * 1024 * 1024
_TEXT_TYPES: Final = frozenset(
    {
        "application/json",
        "application/javascript",
        "application/toml",
        "application/typescript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    }
)
_ALIASES: Final = {"image/jpg": "image/jpeg"}


class ImageAttachment(Value, kw_only=True):
    """`url` is a checked data URI or an http(s) URL."""

    media_type: str
    url: str


class TextAttachment(Value):
    text: str


class OmittedAttachment(Value):
    """`note` tells the model, in one line, what is missing and why."""

    note: str


Attachment = ImageAttachment | TextAttachment | OmittedAttachment


def classify(media: MediaPart) -> Attachment:
    """Decide what `media` becomes in a request."""
    media_type = _normal(media.media_type)
    if media.data.startswith("data:"):
        return _inline(media, media_type)
    if media.data.startswith(("http://", "https://")) and media_type in IMAGE_TYPES:
        return ImageAttachment(media_type=media_type, url=media.data)
    return _omitted(media, "its content is not available here")


def _inline(media: MediaPart, declared: str) -> Attachment:
    in_uri = data_uri.type_of(media.data)
    if in_uri is None:
        return _omitted(media, "its data URI is malformed")
    if len(media.data) > MEDIA_ENCODED_CHARS_MAX:
        return _omitted(media, "it is too large")
    media_type = declared or _normal(in_uri) or "text/plain"
    if media_type not in IMAGE_TYPES and not _is_text(media_type):
        return _omitted(media, "the model cannot read this type")
    given = data_uri.read(media.data)
    if given is None:
        return _omitted(media, "its data URI is malformed")
    if len(given.data) > MEDIA_DECODED_BYTES_MAX:
        return _omitted(media, "it is too large")
    if media_type in IMAGE_TYPES:
        return _image(media, media_type, _normal(in_uri), given.data)
    return _text(media, given.data)


def _image(media: MediaPart, media_type: str, in_uri: str, data: bytes) -> Attachment:
    if in_uri and in_uri != media_type:
        return _omitted(media, f"its data URI says {in_uri[:60]}")
    if not data:
        return _omitted(media, "it is empty")
    return ImageAttachment(media_type=media_type, url=data_uri.write(media_type, data))


def _text(media: MediaPart, data: bytes) -> Attachment:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _omitted(media, "it is not UTF-8 text")
    if media.filename is None:
        return TextAttachment(text)
    return TextAttachment(f"Attached file {_one_line(media.filename)}:\n{text}")


def _omitted(media: MediaPart, why: str) -> OmittedAttachment:
    name = _one_line(media.filename) if media.filename else "a file"
    kind = _one_line(media.media_type) or "unknown type"
    return OmittedAttachment(f"[Attachment left out: {name} ({kind}): {why}]")


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_TYPES
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def _normal(media_type: str) -> str:
    bare = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(bare, bare)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:120]


PDF: Final = "application/pdf"
_SNIFFED_CHARS: Final = 16


class InlineFile(Value):
    """`data` is canonical base64."""

    media_type: str
    data: str


class InlineLimits(Value, kw_only=True):
    """What one provider takes."""

    types: frozenset[str]
    encoded_chars_max: int


def inline_file(media: MediaPart, limits: InlineLimits) -> InlineFile | str:
    """The file itself, or what the model is told instead."""
    document = _pdf(media) if PDF in limits.types else None
    if document is not None:
        return _checked(media, document, limits)
    match classify(media):
        case ImageAttachment(url=url) if url.startswith("data:"):
            return _checked(media, url.partition(",")[2], limits)
        case ImageAttachment():
            return omitted_note(media, "the provider fetches no addresses")
        case TextAttachment(text=text):
            return text
        case OmittedAttachment(note=note):
            return note


def inline_document(media: MediaPart, *, encoded_chars_max: int) -> InlineFile | None:
    """A PDF that is one by its first bytes, and within its bound; None for anything else."""
    data = _pdf(media)
    if data is None or len(data) > encoded_chars_max:
        return None
    is_pdf = sniff_type(base64.b64decode(data[:_SNIFFED_CHARS])) == PDF
    return InlineFile(PDF, data) if is_pdf else None


def omitted_note(media: MediaPart, why: str) -> str:
    """What the model is told instead of a file."""
    name = " ".join((media.filename or "a file").split())[:120]
    return f"[Attachment left out: {name}: {why}]"


def sniff_type(head: bytes) -> str | None:
    """The type by the first bytes; a wrong name for it is refused."""
    if head.startswith(b"\x89PNG"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith(b"GIF8"):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return PDF if head.startswith(b"%PDF-") else None


def _checked(media: MediaPart, encoded: str, limits: InlineLimits) -> InlineFile | str:
    media_type = sniff_type(base64.b64decode(encoded[:_SNIFFED_CHARS]))
    if media_type is None:
        return omitted_note(media, "it is not what its type says")
    if media_type not in limits.types:
        return omitted_note(media, "the model cannot read this type")
    if len(encoded) > limits.encoded_chars_max:
        return omitted_note(media, "it is too large")
    return InlineFile(media_type, encoded)


def _pdf(media: MediaPart) -> str | None:
    """A document's bytes in base64; None for anything that is no data URI of one."""
    is_one = data_uri.type_of(media.data) == PDF
    if not is_one or len(media.data) > MEDIA_ENCODED_CHARS_MAX:
        return None
    given = data_uri.read(media.data)
    return None if given is None else base64.b64encode(given.data).decode()
