"""The wire bytes of a growing conversation, kept so that a long history is encoded only once.

Whoever owns it promises that runs are only added, and that all but the last stay as they are. The
last one may still grow, so it is encoded anew each time.
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
        """The bytes of `runs`, in pieces that a comma joins. One `key`, always one encoding.

        Without `open_last` the last run is over too.
        """
        kept = self._kept.setdefault(key, _ClosedSegments())
        last = max(len(runs) - 1, 0) if open_last else len(runs)
        kept.add([encode(run) for run in runs[kept.count : last]], count=last)
        open_run = [encode(run) for run in runs[last:]]
        return tuple(piece for piece in (*kept.blocks, kept.tail, *open_run) if piece)

    def forget(self) -> None:
        """The runs are others from now on."""
        self._kept.clear()


class _ClosedSegments:
    """Closed runs as bytes: full blocks, and a short tail that new ones join."""

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
