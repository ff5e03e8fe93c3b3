"""Heartbeats by simulated time: no reader waits longer than `x-heartbeat-seconds` announces."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractContextManager
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.net import sse
from perdure.runtime.live_hub import LiveHub, LiveReader
from perdure.schema.live_event import CatalogChanged
from perdure.server import streams
from perdure.server.http.asgi import Send, Sent
from perdure.server.response import Stream
from perdure.server.streams import StreamSettings
from perdure.testing import SeededIds
from tests.harness.simulation.virtual_loop import VirtualLoop

ANNOUNCED_SECONDS: Final = 15.0
LASTS_SECONDS: Final = 600.0

Told = list[tuple[float, bytes]]


async def record(stream: Stream, closing: asyncio.Event) -> Told:
    """What a stream sends in ten minutes, and when."""
    told: Told = []

    async def send(message: Sent) -> None:
        assert message["type"] == "http.response.body"
        told.append((asyncio.get_running_loop().time(), message["body"]))

    async with asyncio.TaskGroup() as group:
        group.create_task(run_stream(stream, send))
        await asyncio.sleep(LASTS_SECONDS)
        closing.set()
    return told


async def run_stream(stream: Stream, send: Send) -> None:
    await stream.run(send)


async def durable(pauses: list[float]) -> Told:
    closing = asyncio.Event()

    async def frames() -> AsyncGenerator[bytes]:
        for pause in pauses:
            await asyncio.sleep(pause)
            yield sse.write(b"{}", id=1)
        await closing.wait()

    return await record(
        streams.durable(frames(), StreamSettings(ANNOUNCED_SECONDS, closing)), closing
    )


async def live(pauses: list[float]) -> Told:
    closing, ids = asyncio.Event(), SeededIds()
    hub = LiveHub(ids)

    def subscribe() -> AbstractContextManager[LiveReader]:
        return hub.subscribe()

    async def publish() -> None:
        for pause in pauses:
            await asyncio.sleep(pause)
            hub.publish(CatalogChanged(), None)

    stream = streams.live(subscribe, ids, StreamSettings(ANNOUNCED_SECONDS, closing))
    async with asyncio.TaskGroup() as group:
        group.create_task(publish())
        return await record(stream, closing)


def run(work: Coroutine[Any, Any, Told]) -> Told:
    loop = VirtualLoop(Random(0))
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


@pytest.mark.parametrize("follow", [durable, live])
@settings(max_examples=40, deadline=None)
@given(pauses=st.lists(st.floats(0, 40), max_size=20))
def test_something_is_sent_within_the_announced_time(
    follow: Callable[[list[float]], Coroutine[Any, Any, Told]], pauses: list[float]
) -> None:
    sent = run(follow(pauses))
    times = [at for at, _ in sent]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert max(gaps) < ANNOUNCED_SECONDS


@pytest.mark.parametrize("follow", [durable, live])
def test_a_quiet_stream_sends_heartbeats_and_no_more_than_needed(
    follow: Callable[[list[float]], Coroutine[Any, Any, Told]],
) -> None:
    beats = [body for _, body in run(follow([])) if body.endswith(sse.HEARTBEAT)]
    assert LASTS_SECONDS / ANNOUNCED_SECONDS <= len(beats) <= 2 * LASTS_SECONDS / ANNOUNCED_SECONDS
