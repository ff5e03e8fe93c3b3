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
        self._kept: dict[Hashable, _ClosedSegments] = {}

    def pieces(
        self,
        key: Hashable,
        runs: Sequence[R],
        encode: Callable[[R], bytes],
        *,
        open_last: bool = True,
    ) -> tuple[bytes, ...]:
        """The bytes of `runs`, in pieces to be joined by commas. A `key` identifies the encoding.

        Without `open_last` the last segment is closed too.
        """
        kept = self._kept.setdefault(key, _ClosedSegments())
        last = max(len(runs) - 1, 0) if open_last else len(runs)
        kept.add([encode(run) for run in runs[kept.count : last]], count=last)
        open_run = [encode(run) for run in runs[last:]]
        return tuple(piece for piece in (*kept.blocks, kept.tail, *open_run) if piece)

    def forget(self) -> None:
        """Drop all bytes, because the segments are replaced."""
        self._kept.clear()


class _ClosedSegments:
    """Closed segments as bytes: full blocks, and a short tail that new ones are added to."""

    def __init__(self) -> None:
        self.count = 0
        self.blocks: list[bytes] = []
        self.tail = b""

    def add(self, runs: list[bytes], *, count: int) -> None:
        self.count = max(self.count, count)
        self.tail = b",".join(piece for piece in (self.tail, *runs) if piece)
        if len(self.tail) > _BLOCK_BYTES:
            self.blocks.append(self.tail)
            self.tail = b""
