"""A bounded ring of encoded frames, which all V1 readers of one form share."""

from perdure.core import limits
from perdure.schema.location import LocationRef


class EventRing:
    def __init__(self, *, bytes_max: int = limits.LIVE_RING_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._frames: list[tuple[LocationRef | None, bytes]] = []
        self._size = 0
        self._joined: tuple[int, int, LocationRef | None, bytes] = (0, 0, None, b"")
        """The last answer of `since`, with what was asked: most readers ask the same."""
        self.start = 0
        self.readers = 0

    @property
    def end(self) -> int:
        return self.start + len(self._frames)

    def add(self, location: LocationRef | None, frame: bytes) -> None:
        self._frames.append((location, frame))
        self._size += len(frame)
        if self._size > self._bytes_max:
            self._evict()

    def since(self, cursor: int, location: LocationRef | None) -> bytes:
        """All frames from `cursor` on; with a Location, those of it and those of none."""
        first, last, asked, joined = self._joined
        if (first, last, asked) != (cursor, self.end, location):
            joined = self._join(cursor, location)
            self._joined = (cursor, self.end, location, joined)
        return joined

    def clear(self) -> None:
        self.start, self._size = self.end, 0
        self._frames.clear()
        self._joined = (0, 0, None, b"")

    def _join(self, cursor: int, location: LocationRef | None) -> bytes:
        found = self._frames[cursor - self.start :]
        if location is None:
            return b"".join([frame for _, frame in found])
        return b"".join([frame for where, frame in found if where in (None, location)])

    def _evict(self) -> None:
        # Half at once, so that trimming the list is rare.
        dropped = 0
        while self._size > self._bytes_max // 2 and dropped < len(self._frames) - 1:
            self._size -= len(self._frames[dropped][1])
            dropped += 1
        del self._frames[:dropped]
        self.start += dropped
