"""Cache of the encoded bytes of a growing conversation, so that its history is encoded only once.

The owner guarantees that segments are only added, and that all but the last never change. The last
one may still grow, so it is encoded again each time.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, TypeVar

R = TypeVar("R")

_BLOCK_BYTES: Final = 64 * 1024


class EncodedHistory:
    def __init__(self) -> None:
        self._closed: dict[Hashable, _ClosedSegments] = {}

    def pieces(
        self,
        key: Hashable,
        segments: Sequence[R],
        encode: Callable[[R], bytes],
        *,
        open_last: bool = True,
    ) -> tuple[bytes, ...]:
        """The bytes of `segments`, in pieces to join by commas. A `key` identifies the encoding.

        Without `open_last` the last segment is closed too.
        """
        closed = self._closed.setdefault(key, _ClosedSegments())
        last = max(len(segments) - 1, 0) if open_last else len(segments)
        closed.add([encode(segment) for segment in segments[closed.count : last]], count=last)
        open_segment = [encode(segment) for segment in segments[last:]]
        return tuple(piece for piece in (*closed.blocks, closed.tail, *open_segment) if piece)

    def clear(self) -> None:
        """Drop all bytes, because the segments are replaced."""
        self._closed.clear()


class _ClosedSegments:
    """Closed segments as bytes: full blocks, and a short tail that new ones are added to."""

    def __init__(self) -> None:
        self.count = 0
        self.blocks: list[bytes] = []
        self.tail = b""

    def add(self, segments: list[bytes], *, count: int) -> None:
        self.count = max(self.count, count)
        self.tail = b",".join(piece for piece in (self.tail, *segments) if piece)
        if len(self.tail) > _BLOCK_BYTES:
            self.blocks.append(self.tail)
            self.tail = b""
