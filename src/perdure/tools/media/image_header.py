"""Reads the size of an image from its header.

Only the header is read, so that a small file with a huge picture is refused before memory is
allocated for it. Whether the rest can be decoded is not checked.
"""

import struct
from typing import Final

from perdure.schema.value import Value

# Start-of-frame markers of JPEG: all of C0 to CF but tables (C4), extensions (C8), arithmetic (CC).
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})


class ImageSize(Value):
    width: int
    height: int

    @property
    def pixels(self) -> int:
        return self.width * self.height

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


def read_size(data: bytes, mime: str) -> ImageSize | None:
    """The size in the header; None when there is no valid one."""
    try:
        match mime:
            case "image/png":
                size = _png(data)
            case "image/gif":
                size = ImageSize(*struct.unpack_from("<HH", data, 6))
            case "image/webp":
                size = _webp(data)
            case _:
                size = _jpeg(data)
    except struct.error:
        return None
    return size if size is not None and size.pixels > 0 else None


def _png(data: bytes) -> ImageSize | None:
    return ImageSize(*struct.unpack_from(">II", data, 16)) if data[12:16] == b"IHDR" else None


def _webp(data: bytes) -> ImageSize | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (
            int.from_bytes(data[position : position + 3], "little") for position in (24, 27)
        )
        return ImageSize(width + 1, height + 1) if len(data) >= 30 else None
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageSize(width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg(data: bytes) -> ImageSize | None:
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif marker in _JPEG_BARE:
            position += 2
        elif marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            return ImageSize(width, height)
        else:
            position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    return None
