"""Detects the kind of a file from its bytes: an image for the model, text, or binary.

Images are recognised by their first bytes, never by name. Text has no NUL, few control characters
and no binary suffix.
"""

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mimetypes import MimeTypes

PDF: Final = "application/pdf"
_BINARY_SUFFIXES: Final = (
    ".7z",
    ".bz2",
    ".class",
    ".dll",
    ".docx",
    ".dylib",
    ".exe",
    ".gz",
    ".jar",
    ".mp3",
    ".mp4",
    ".o",
    ".otf",
    ".parquet",
    ".pdf",
    ".pptx",
    ".pyc",
    ".so",
    ".sqlite",
    ".tar",
    ".ttf",
    ".wasm",
    ".woff",
    ".woff2",
    ".xlsx",
    ".xz",
    ".zip",
    ".zst",
)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\b\x1b")
_PRINTABLE: Final = bytes(byte for byte in range(256) if byte >= 32 or byte in _TEXT_CONTROLS)
_TEXT_MIMES: Final = ("application/json", "application/javascript", "application/xml")


def image_mime(head: bytes) -> str | None:
    """The image type of a file that begins with `head`, if models accept it."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def is_pdf(head: bytes) -> bool:
    return head.startswith(b"%PDF-")


def is_binary(name: str, head: bytes) -> bool:
    """Whether a file is not text."""
    if name.lower().endswith(_BINARY_SUFFIXES) or is_pdf(head):
        return True
    if b"\0" in head:
        return True
    controls = len(head.translate(None, _PRINTABLE))
    return controls * 10 > len(head) * 3


def text_mime(name: str) -> str:
    guess = _mime_types().guess_type(name)[0] or ""
    return guess if guess.startswith("text/") or guess in _TEXT_MIMES else "text/plain"


@cache
def _mime_types() -> "MimeTypes":
    # An instance of its own: the module's functions read the tables of the machine.
    from mimetypes import MimeTypes

    return MimeTypes()
