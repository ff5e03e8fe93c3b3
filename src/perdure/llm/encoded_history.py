"""Cache of the encoded bytes of a growing conversation, so that its history is encoded only once.

The owner guarantees that segments are only added, and that all but the last never change. Segments
at the end that may still change, or are written differently in the next request, stay open: their
items are kept, and encoded each time.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from perdure.llm.message import Segment
from perdure.schema import codec
from perdure.schema.codec import JsonObject

_BLOCK_BYTES: Final = 64 * 1024


class EncodedHistory:
    def __init__(self) -> None:
        self._encodings: dict[Hashable, _Encoding] = {}

    def extend(
        self,
        key: Hashable,
        segments: Sequence[Segment],
        items: Callable[[int], list[JsonObject]],
        *,
        open_count: int,
    ) -> tuple[list[bytes], list[JsonObject]]:
        """The bytes of the closed segments, a comma after each, and the items of the open ones.

        A `key` identifies the encoding. `items` makes those of the segment at an index.
        """
        encoding = self._encodings.setdefault(key, _Encoding())
        encoding.extend(segments, items, open_count=open_count)
        closed = [*encoding.blocks, encoding.tail] if encoding.tail else encoding.blocks.copy()
        return closed, [item for _, listed in encoding.open.values() for item in listed]

    def clear(self) -> None:
        """Drop all bytes, because the segments are replaced."""
        self._encodings.clear()


class _Encoding:
    """A conversation in one encoding."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        """Closed segments, in large pieces."""
        self.tail = b""
        """The closed segments after the blocks; new ones are added here."""
        self.open: dict[int, tuple[Segment, list[JsonObject]]] = {}
        self._closed_count = 0

    def extend(
        self,
        segments: Sequence[Segment],
        items: Callable[[int], list[JsonObject]],
        *,
        open_count: int,
    ) -> None:
        def listed(index: int) -> list[JsonObject]:
            kept = self.open.get(index)
            # One that has grown is another object.
            return items(index) if kept is None or kept[0] is not segments[index] else kept[1]

        first_open = max(len(segments) - open_count, self._closed_count)
        for index in range(self._closed_count, first_open):
            self._close(listed(index))
        self._closed_count = first_open
        self.open = {
            index: (segments[index], listed(index)) for index in range(first_open, len(segments))
        }

    def _close(self, items: list[JsonObject]) -> None:
        if items:
            self.tail += encode_items(items)
        if len(self.tail) > _BLOCK_BYTES:
            self.blocks.append(self.tail)
            self.tail = b""


def encode_items(items: list[JsonObject]) -> bytes:
    """Some items of a JSON array, a comma after each."""
    return codec.encode(items)[1:-1] + b","
