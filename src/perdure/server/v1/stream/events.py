"""The V1 event streams: one reader of the live events, translated once for all V1 subscribers.

There is no task of its own: the subscriber that finds nothing new waits for the live events and
translates them for the others. An event counts as translated only afterwards, so a
subscriber that disconnects in the middle loses nothing for the others.
"""

import asyncio
from collections.abc import Generator
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
from perdure.server.v1.stream import delta_run
from perdure.server.v1.stream.event_ring import EventRing
from perdure.server.v1.stream.prompt_origins import PromptOrigins
from perdure.server.v1.stream.translation import Told, Translation

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime
    from perdure.runtime.live_hub import LiveReader

_SEPARATOR = b"\n\n"


class V1Events:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._plain = EventRing()
        self._global = EventRing()
        self.origins = PromptOrigins()
        self._translation = Translation(runtime, self.origins)
        self._pending: bytes = b""
        """Frames of the hub."""
        self._translated: int = 0
        """How many bytes of them are translated."""
        self._upstream: LiveReader | None = None
        self._held = ExitStack()
        self._is_advancing = False
        self._advanced = asyncio.Event()
        """Set when what `_advance` waited for is in the rings; each wait has its own."""

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

    async def wait_beyond(self, ring: EventRing, cursor: int) -> bool:
        """Wait for frames of the ring after `cursor`; False when there are no more."""
        while ring.end == cursor:
            if self._is_advancing:
                await self._advanced.wait()
                continue
            self._is_advancing = True
            try:
                if not await self._advance():
                    return False
            finally:
                # All wake, also if this one was cancelled: one of them goes on.
                self._is_advancing = False
                done, self._advanced = self._advanced, asyncio.Event()
                done.set()
        return True

    async def _advance(self) -> bool:
        """Wait for live events and translate them; False when there are no more."""
        assert self._upstream is not None
        if self._translated == len(self._pending):
            frames = await self._upstream.next()
            if frames is None:
                return False
            self._pending = frames
            self._translated = 0
        while self._translated < len(self._pending):
            run = delta_run.find_run(self._pending, self._translated)
            part = None if run is None else await self._translation.find_delta_part(run)
            if run is not None and part is not None:
                self._add(part.location, part.translate(run))
                self._translated += len(run.frames)
            else:
                end = self._pending.index(_SEPARATOR, self._translated)
                data = self._pending[self._translated : end].removeprefix(b"data: ")
                for told in await self._translation.translate(data):
                    self._publish(told)
                self._translated = end + len(_SEPARATOR)
        return True

    def _publish(self, told: Told) -> None:
        self._add(told.location, sse.write(_payload(told.id, told.type, told.properties)))

    def _add(self, where: LocationRef | None, frames: bytes) -> None:
        if not frames:
            return
        if self._plain.readers:
            self._plain.add(where, frames)
        if self._global.readers:
            self._global.add(None, _wrap(frames, "" if where is None else where.directory))

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
                self._pending = b""
                self._translated = 0
                self._translation.forget()

    def _framing(self, *, wraps: bool) -> Framing:
        def write(type: str, properties: object) -> bytes:
            payload = _payload(self._runtime.ids.event(), type, properties)
            return _wrap(sse.write(payload), "") if wraps else sse.write(payload)

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
            elif not await self._events.wait_beyond(self._ring, self._cursor):
                self.lagged = self._events.lagged
                return None


def _payload(id: str, type: str, properties: object) -> bytes:
    return codec.encode({"id": id, "type": type, "properties": properties})


def _wrap(frames: bytes, directory: str) -> bytes:
    """The frames as the stream of all directories has them.

    JSON has no line break and no bare quotation mark in a text, so only frames begin and end so.
    """
    head = b'data: {"directory":%b,"payload":{"id":' % codec.encode(directory)
    return frames.replace(b'data: {"id":', head).replace(b"}\n\n", b"}}\n\n")
