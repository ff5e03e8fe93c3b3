"""Images of a test's own making: honest ones, large ones, and some that lie."""

import base64
import struct
import zlib
from io import BytesIO

import PIL.Image


def picture(width: int = 30, height: int = 20, kind: str = "PNG", colour: str = "red") -> bytes:
    out = BytesIO()
    PIL.Image.new("RGB", (width, height), colour).save(out, kind)
    return out.getvalue()


def noise(width: int, height: int) -> bytes:
    """A PNG that no encoder makes small."""
    out = BytesIO()
    PIL.Image.effect_noise((width, height), 100).convert("RGB").save(out, "PNG")
    return out.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A few hundred bytes that say they are a huge picture."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(bytes(10_000)))
    return b"\x89PNG\r\n\x1a\n" + header + data + chunk(b"IEND", b"")


def inlined(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def opened(uri: str) -> PIL.Image.Image:
    return PIL.Image.open(BytesIO(base64.b64decode(uri.partition(",")[2])))
