"""Server-sent events: the durable stream of a Session, and the live stream of this server.

The runtime makes the frames; this adds what belongs to the connection: a first byte at once, a
heartbeat whenever nothing else was sent, and the first and last event of the live stream. A reader
that disconnects cancels the task that runs here, which ends its subscription.

Invariant: every send is whole frames, so a heartbeat can be sent between any two of them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final

from perdure.net import sse
from perdure.net.streams import close_stream
from perdure.ports import IdSource
from perdure.schema import codec
from perdure.schema.errors import DomainError
from perdure.schema.live_event import (
    LIVE_TYPES,
    InstanceDisposed,
    LiveEvent,
    ServerConnected,
    ServerLagged,
)
from perdure.schema.value import Value
from perdure.server.http.asgi import Header, Send
from perdure.server.response import Stream
from perdure.server.results import FrameReader, Framing

logger = logging.getLogger(__name__)

HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
)
_HEARTBEAT_SHARE: Final = 2 / 3
"""A heartbeat is sent after this part of the announced time, so that it arrives within it."""


class StreamSettings(Value):
    heartbeat_seconds: float
    closing: asyncio.Event
    """Set once, when the server begins to shut down."""


def durable(frames: AsyncIterator[bytes], settings: StreamSettings) -> Stream:
    async def run(send: Send) -> None:
        outlet = _Outlet(send)
        try:
            await outlet.write(sse.HEARTBEAT)
            await _pump_with_heartbeats(outlet, settings, lambda: _send_durable(frames, outlet))
        finally:
            # A cancelled write leaves the generator suspended; it holds a reader of the log.
            await close_stream(frames)
        await outlet.end()

    return Stream(_headers(settings), run)


def live(
    subscribe: Callable[[], AbstractContextManager[FrameReader]],
    ids: IdSource,
    settings: StreamSettings,
    framing: Framing | None = None,
) -> Stream:
    framing = framing or Framing(lambda event: _frame(event, ids), lambda: sse.HEARTBEAT)

    async def run(send: Send) -> None:
        outlet = _Outlet(send)
        # Subscribe before the first event: what happens after that event is in the stream.
        with subscribe() as subscription:
            await outlet.write(framing.event(ServerConnected()) + sse.HEARTBEAT)
            await _pump_with_heartbeats(
                outlet, settings, lambda: _send_live(subscription, outlet), framing.heartbeat
            )
            farewell = InstanceDisposed()
            if subscription.lagged and not settings.closing.is_set():
                farewell = ServerLagged(reason="This reader fell too far behind; refresh first")
        await outlet.write(framing.event(farewell))
        await outlet.end()

    return Stream(_headers(settings), run)


def _headers(settings: StreamSettings) -> tuple[Header, ...]:
    """A reader that gets nothing for longer than is announced may take the stream for lost."""
    return (*HEADERS, (b"x-heartbeat-seconds", b"%g" % settings.heartbeat_seconds))


class _Outlet:
    """The sending side, which remembers when it was last used."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._writing = False
        self._used_at = _now()

    async def write(self, frames: bytes) -> None:
        self._writing = True
        try:
            await self._send({"type": "http.response.body", "body": frames, "more_body": True})
        finally:
            self._writing = False
            self._used_at = _now()

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def seconds_until(self, quiet_seconds: float) -> float:
        """How long until nothing has been sent for so long; a send that is under way counts."""
        return quiet_seconds if self._writing else self._used_at + quiet_seconds - _now()


async def _pump_with_heartbeats(
    outlet: _Outlet,
    settings: StreamSettings,
    pump: Callable[[], Awaitable[None]],
    heartbeat: Callable[[], bytes] = lambda: sse.HEARTBEAT,
) -> None:
    """Run `pump` until it or the server ends, with heartbeats while it has nothing to send."""
    quiet_seconds = settings.heartbeat_seconds * _HEARTBEAT_SHARE
    async with asyncio.TaskGroup() as group:
        pumping = group.create_task(_awaited(pump), name="stream pump")
        closing = group.create_task(_awaited(settings.closing.wait), name="stream closing")
        ends = {pumping, closing}
        while not (await _first_of(ends, max(outlet.seconds_until(quiet_seconds), 0))):
            if outlet.seconds_until(quiet_seconds) <= 0:
                await outlet.write(heartbeat())
        pumping.cancel()
        closing.cancel()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _first_of(tasks: set[asyncio.Task[None]], seconds_max: float) -> set[asyncio.Task[None]]:
    """The tasks that are done, as soon as one is; none when the time is up."""
    done, _ = await asyncio.wait(tasks, timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED)
    return done


async def _awaited(wait: Callable[[], Awaitable[object]]) -> None:
    await wait()


async def _send_durable(frames: AsyncIterator[bytes], outlet: _Outlet) -> None:
    try:
        async for page in frames:
            await outlet.write(page)
    except DomainError as error:
        # The status was sent long ago. A client that reads the next page of history is told why.
        logger.warning("a durable stream ended early: %s", error.message)


async def _send_live(subscription: FrameReader, outlet: _Outlet) -> None:
    while (frames := await subscription.next()) is not None:
        await outlet.write(frames)


def _frame(event: LiveEvent, ids: IdSource) -> bytes:
    envelope = {"id": ids.event(), "type": LIVE_TYPES[type(event)], "data": event}
    return sse.write(codec.encode(envelope))
