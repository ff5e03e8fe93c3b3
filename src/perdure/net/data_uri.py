"""Data URIs, `data:image/png;base64,...`.

Invariant: parsing never raises; a malformed URI gives None.
"""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from perdure.schema.value import Value


class DataUri(Value):
    media_type: str
    """As written, in lower case and without parameters; may be empty."""
    data: bytes


def read(uri: str) -> DataUri | None:
    """Parse a data URI. Slow for large ones."""
    header = _header(uri)
    if header is None:
        return None
    media_type, *parameters = _words(header)
    data = unquote_to_bytes(uri[len("data:,") + len(header) :])
    if "base64" not in parameters:
        return DataUri(media_type, data)
    try:
        return DataUri(media_type, base64.b64decode(data, validate=True))
    except binascii.Error:
        return None


def type_of(uri: str) -> str | None:
    """The media type alone, without decoding the bytes."""
    header = _header(uri)
    return None if header is None else _words(header)[0]


def write(media_type: str, data: bytes) -> str:
    return write_encoded(media_type, base64.b64encode(data).decode())


def write_encoded(media_type: str, encoded: str) -> str:
    """A data URI of bytes that are already base64."""
    return f"data:{media_type};base64,{encoded}"


def _header(uri: str) -> str | None:
    """The part before the bytes, without copying them."""
    comma = uri.find(",")
    return uri[len("data:") : comma] if uri.startswith("data:") and comma >= 0 else None


def _words(header: str) -> list[str]:
    return [word.strip().lower() for word in header.split(";")]
