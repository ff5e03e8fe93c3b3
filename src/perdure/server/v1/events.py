"""The V1 event streams: one reader of the live events, translated once for all V1 subscribers.

There is no task of its own: the subscriber that finds nothing new waits for the live events and
translates them for the others. An event leaves `_pending` only when it is translated, so a
subscriber that disconnects in the middle loses nothing for the others.
"""

import asyncio
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from perdure.net import sse
from perdure.protocol.v1.event import V1Event
from perdure.schema import codec
from perdure.schema.live_event import LIVE_TYPES, InstanceDisposed, LiveEvent
from perdure.schema.location import LocationRef
from perdure.server.call import Call
from perdure.server.results import Framing, LiveStream
from perdure.server.v1 import location
from perdure.server.v1.event_ring import EventRing
from perdure.server.v1.translation import Told, Translation

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime
    from perdure.runtime.live_hub import LiveReader

_SEPARATOR = b"\n\n"


class V1Events:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._plain = EventRing()
        self._global = EventRing()
        self._translation = Translation(runtime)
        self._pending: deque[bytes] = deque()
        self._upstream: LiveReader | None = None
        self._held = ExitStack()
        self.lock = asyncio.Lock()

    async def subscribe(self, call: Call[None, None]) -> LiveStream[V1Event]:
        """The events of the directory that the request names, else of all directories."""
        where = location.find_named(call)
        return LiveStream(lambda: self._read(self._plain, where), self._framing(wraps=False))

    async def subscribe_global(self, call: Call[None, None]) -> LiveStream[V1Event]:
        return LiveStream(lambda: self._read(self._global, None), self._framing(wraps=True))

    def tell(self, type: str, properties: object, where: LocationRef | None) -> None:
        """Send an event of V1 alone to the subscribers of a directory, or to all."""
        self._publish(Told(self._runtime.ids.event(), type, properties, where))
        if self._upstream is not None:
            self._upstream.release()

    @property
    def lagged(self) -> bool:
        return self._upstream is not None and self._upstream.lagged

    async def advance(self) -> bool:
        """Wait for live events and translate them; False when there are no more."""
        assert self._upstream is not None
        if not self._pending:
            frames = await self._upstream.next()
            if frames is None:
                return False
            self._pending.extend(frame for frame in frames.split(_SEPARATOR) if frame)
        while self._pending:
            data = self._pending[0].removeprefix(b"data: ")
            delta = await self._translation.translate_delta(data)
            if delta is not None:
                self._publish_all(delta.location, delta.payloads)
            else:
                for told in await self._translation.translate(data):
                    self._publish(told)
            self._pending.popleft()
        return True

    def _publish(self, told: Told) -> None:
        payload = _payload(told.id, told.type, told.properties)
        self._publish_all(told.location, (payload,))

    def _publish_all(self, where: LocationRef | None, payloads: Sequence[bytes]) -> None:
        if self._plain.readers:
            # One line each: no JSON that is encoded here has a line break.
            self._plain.add(where, b"".join([b"data: %b\n\n" % each for each in payloads]))
        if self._global.readers:
            head = codec.encode("" if where is None else where.directory)
            wrapped = (b'{"directory":%b,"payload":%b}' % (head, each) for each in payloads)
            self._global.add(None, b"".join(map(sse.write, wrapped)))

    @contextmanager
    def _read(self, ring: EventRing, where: LocationRef | None) -> Generator["V1Reader"]:
        if self._upstream is None:
            self._upstream = self._held.enter_context(self._runtime.hub.subscribe())
        ring.readers += 1
        try:
            yield V1Reader(self, ring, where)
        finally:
            ring.readers -= 1
            if not ring.readers:
                ring.clear()
            if not (self._plain.readers or self._global.readers):
                self._held.close()
                self._upstream = None
                self._pending.clear()
                self._translation.forget()

    def _framing(self, *, wraps: bool) -> Framing:
        def write(type: str, properties: object) -> bytes:
            payload = _payload(self._runtime.ids.event(), type, properties)
            return sse.write(b'{"directory":"","payload":%b}' % payload if wraps else payload)

        def event(event: LiveEvent) -> bytes:
            if isinstance(event, InstanceDisposed):
                # To a V1 client this event means "load all again now", from a server that ends.
                return sse.HEARTBEAT
            return write(LIVE_TYPES[type(event)], event)

        return Framing(event, lambda: write("server.heartbeat", {}))


class V1Reader:
    def __init__(self, events: V1Events, ring: EventRing, where: LocationRef | None) -> None:
        self._events = events
        self._ring = ring
        self._where = where
        self._cursor = ring.end
        self.lagged = False

    async def next(self) -> bytes | None:
        """Wait for frames after those of the last call; None when the stream ends."""
        while True:
            if self._cursor < self._ring.start:
                self.lagged = True
                return None
            if self._cursor < self._ring.end:
                frames = self._ring.since(self._cursor, self._where)
                self._cursor = self._ring.end
                if frames:
                    return frames
            async with self._events.lock:
                # Another subscriber may have translated while this one waited for its turn.
                if self._cursor == self._ring.end and not await self._events.advance():
                    self.lagged = self._events.lagged
                    return None


def _payload(id: str, type: str, properties: object) -> bytes:
    return codec.encode({"id": id, "type": type, "properties": properties})
