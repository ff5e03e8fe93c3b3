"""An attached file as bytes inside a request, or the text to send in its stead.

For providers that take files inline and fetch nothing. The type is told by the first bytes: a
provider refuses a file that is not what it is said to be, and an attachment stays in the
conversation for good. Whether the provider has a form for it is the wire protocol's knowledge.

Invariant: `inlined` has an answer for every media part and never raises.
"""

import base64
from typing import Final

from perdure.llm import attachment, data_uri
from perdure.llm.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.message import MediaPart
from perdure.schema.value import Value

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


def inlined(media: MediaPart, limits: InlineLimits) -> InlineFile | str:
    """The file itself, or what the model is told instead."""
    document = _pdf(media) if PDF in limits.types else None
    if document is not None:
        return _checked(media, document, limits)
    match attachment.classify(media):
        case ImageAttachment(url=url) if url.startswith("data:"):
            return _checked(media, url.partition(",")[2], limits)
        case ImageAttachment():
            return left_out(media, "the provider fetches no addresses")
        case TextAttachment(text=text):
            return text
        case OmittedAttachment(note=note):
            return note


def document(media: MediaPart, *, encoded_chars_max: int) -> InlineFile | None:
    """A PDF that is one by its first bytes, and within its bound; None for anything else."""
    data = _pdf(media)
    if data is None or len(data) > encoded_chars_max:
        return None
    is_pdf = type_of(base64.b64decode(data[:_SNIFFED_CHARS])) == PDF
    return InlineFile(PDF, data) if is_pdf else None


def left_out(media: MediaPart, why: str) -> str:
    """What the model is told instead of a file."""
    name = " ".join((media.filename or "a file").split())[:120]
    return f"[Attachment left out: {name}: {why}]"


def type_of(head: bytes) -> str | None:
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
    media_type = type_of(base64.b64decode(encoded[:_SNIFFED_CHARS]))
    if media_type is None:
        return left_out(media, "it is not what its type says")
    if media_type not in limits.types:
        return left_out(media, "the model cannot read this type")
    if len(encoded) > limits.encoded_chars_max:
        return left_out(media, "it is too large")
    return InlineFile(media_type, encoded)


def _pdf(media: MediaPart) -> str | None:
    """A document's bytes in base64; None for anything that is no data URI of one."""
    is_one = data_uri.type_of(media.data) == PDF
    if not is_one or len(media.data) > attachment.MEDIA_ENCODED_CHARS_MAX:
        return None
    given = data_uri.read(media.data)
    return None if given is None else base64.b64encode(given.data).decode()
