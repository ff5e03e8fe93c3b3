"""Counts the values of a JSON text without decoding it.

A text of a few megabytes can hold millions of values, and decoding them is a single call that
nothing can interrupt. So texts of others are counted first, in pieces.
"""

from typing import Final

from perdure.lazy_pattern import lazy_pattern

JSON_VALUES_MAX: Final = 50_000
"""Of one request or one tool call. Decoding that many takes about 20 ms."""

_PIECE_BYTES: Final = 128 * 1024
_SMALL_BYTES: Final = 2 * JSON_VALUES_MAX
_STRING: Final = lazy_pattern(rb'"[^"]*+"?')


def is_too_many(data: bytes) -> bool:
    """Whether the text has more than JSON_VALUES_MAX values; malformed texts are counted too."""
    # Each value takes two bytes at least, and each but the outermost follows one of the marks.
    if len(data) <= _SMALL_BYTES or _count_marks(data) <= JSON_VALUES_MAX:
        return False
    at = count = 0
    in_string = False
    while at < len(data) and count <= JSON_VALUES_MAX:
        piece = data[at : at + _PIECE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2 and len(piece) == _PIECE_BYTES:
            piece = piece[:-1]  # An escape stays in one piece.
        at += len(piece)
        plain = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        if in_string:
            plain = b'"' + plain
        count += _count_marks(_STRING.sub(b"", plain))
        in_string = plain.count(b'"') % 2 == 1
    return count > JSON_VALUES_MAX


def _count_marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
