"""Publishes live events of the instance: one ring of encoded frames, any number of readers.

An event is encoded once; every reader gets the same bytes. The ring is bounded by bytes: the stream
of a reader that falls behind it is ended and marked as lagged; other readers are not affected.
There is no replay.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from perdure.core import limits
from perdure.net import sse
from perdure.ports import IdSource
from perdure.runtime.live_answers import LiveAnswers
from perdure.schema import codec
from perdure.schema.ids import SessionID
from perdure.schema.live_event import LIVE_TYPES, LiveEvent
from perdure.schema.location import LocationRef
from perdure.store.log.event_store import StoredEvent


class LiveHub:
    def __init__(self, ids: IdSource, *, bytes_max: int = limits.LIVE_RING_BYTES_MAX) -> None:
        self._ids = ids
        self._bytes_max = bytes_max
        self._frames: list[tuple[LocationRef | None, bytes]] = []
        self._start = 0
        self._size = 0
        self._readers: set[LiveReader] = set()
        self._joined: tuple[int, int, bytes] = (0, 0, b"")
        self.closed = False
        self.answers = LiveAnswers()

    @property
    def has_readers(self) -> bool:
        """Whether a client listens; without one, deltas need not be made."""
        return bool(self._readers)

    def publish(self, event: LiveEvent, location: LocationRef | None) -> None:
        if self._readers:
            self._add(location, sse.write(self._wire(event, location)))

    def publish_stored(
        self,
        session_id: SessionID,
        events: tuple[StoredEvent, ...],
        location: LocationRef | None,
    ) -> None:
        """Publish durable events after their commit. Their frames name the Session already."""
        if self._readers:
            for event in events:
                self._add(location, sse.write(event.wire))

    @contextmanager
    def subscribe(self, location: LocationRef | None = None) -> Generator["LiveReader"]:
        """Read events from now on; with a Location, those of it and those of none."""
        reader = LiveReader(self, location)
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            if not self._readers:
                self._start, self._size = self.end, 0
                self._frames.clear()
                self._joined = (0, 0, b"")

    def close(self) -> None:
        """End every reader; no more events are published."""
        self.closed = True
        for reader in self._readers:
            reader.wake()

    @property
    def start(self) -> int:
        return self._start

    @property
    def end(self) -> int:
        return self._start + len(self._frames)

    def frames_since(self, cursor: int, location: LocationRef | None) -> bytes:
        """Return all frames from `cursor` on; readers at the same cursor share one string."""
        if location is not None:
            wanted = self._frames[cursor - self._start :]
            return b"".join(data for where, data in wanted if where in (None, location))
        first, last, joined = self._joined
        if (first, last) != (cursor, self.end):
            joined = b"".join(data for _, data in self._frames[cursor - self._start :])
            self._joined = (cursor, self.end, joined)
        return joined

    def _add(self, location: LocationRef | None, data: bytes) -> None:
        self._frames.append((location, data))
        self._size += len(data)
        if self._size > self._bytes_max:
            self._evict()
        for reader in self._readers:
            reader.wake()

    def _evict(self) -> None:
        # Half at once, so that trimming the list is rare.
        dropped = 0
        while self._size > self._bytes_max // 2 and dropped < len(self._frames) - 1:
            self._size -= len(self._frames[dropped][1])
            dropped += 1
        del self._frames[:dropped]
        self._start += dropped

    def _wire(self, event: LiveEvent, location: LocationRef | None) -> bytes:
        name = LIVE_TYPES[type(event)]
        head = f'{{"id":"{self._ids.event()}","type":"{name}",'.encode()
        data = codec.encode(event)
        if location is None:
            return b'%b"data":%b}' % (head, data)
        return b'%b"location":%b,"data":%b}' % (head, _location_wire(location), data)


class LiveReader:
    def __init__(self, hub: LiveHub, location: LocationRef | None) -> None:
        self._hub = hub
        self._location = location
        self._cursor = hub.end
        self._signal = asyncio.Event()
        self._released = False
        self.lagged = False

    def release(self) -> None:
        """Have `next` return once without frames: its caller has something else to tell."""
        self._released = True
        self.wake()

    def wake(self) -> None:
        if not self._signal.is_set():
            self._signal.set()

    async def next(self) -> bytes | None:
        """Wait for frames after those of the last call; None when the stream ends."""
        while True:
            if self._cursor < self._hub.start:
                self.lagged = True
                return None
            if self._cursor < self._hub.end:
                frames = self._hub.frames_since(self._cursor, self._location)
                self._cursor = self._hub.end
                if frames:
                    return frames
            if self._hub.closed:
                return None
            if self._released:
                self._released = False
                return b""
            self._signal.clear()
            await self._signal.wait()


_LOCATION_WIRES: dict[LocationRef, bytes] = {}


def _location_wire(location: LocationRef) -> bytes:
    wire = _LOCATION_WIRES.get(location)
    if wire is None:
        if len(_LOCATION_WIRES) > 1_000:
            _LOCATION_WIRES.clear()
        wire = _LOCATION_WIRES[location] = codec.encode(location)
    return wire
