"""Small bodies that become huge when they are decompressed."""

import struct
import zlib
from typing import Final

_HEAD: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_RAW: Final = -zlib.MAX_WBITS


def gzip_bomb(megabytes: int, filler: bytes = b"\0") -> bytes:
    """A sound gzip file, made by compressing one megabyte and saying it again and again."""
    piece = filler * 2**20
    packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    # After a full flush nothing refers to what came before: the block may stand anywhere.
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(megabytes):
        check = zlib.crc32(piece, check)
    end = zlib.compressobj(9, zlib.DEFLATED, _RAW).flush()
    return _HEAD + block * megabytes + end + struct.pack("<II", check, megabytes << 20)
