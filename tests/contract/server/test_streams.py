"""Both event streams over a real connection: first byte, heartbeat, resume, the end."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.location import LocationRef
from perdure.server.serve import serve
from tests.contract.server.fake_runtime import (
    PATIENCE_SECONDS,
    QUICK,
    SESSION,
    RawClient,
    Stage,
    call,
    connected,
    listening,
    settings,
)
from tests.requirements import requirement

EVENTS = f"/api/session/{SESSION}/event"


def event(chunk: bytes) -> JsonObject:
    frames = list(sse.Reader(bytes_max=10_000).feed(chunk))
    return codec.decode_any(frames[0].data)


async def subscribe(client: RawClient, path: str, headers: str = "") -> None:
    await client.say(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n".encode())
    answer = await client.head()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-accel-buffering"] == "no"
    assert float(answer.headers["x-heartbeat-seconds"]) > 0
    assert "content-encoding" not in answer.headers


@pytest.fixture
async def stage() -> Stage:
    return Stage()


@pytest.fixture
async def port(stage: Stage) -> AsyncGenerator[int]:
    async with listening(stage.app(), QUICK) as (_, number):
        yield number


@requirement("S129")
async def test_a_durable_stream_begins_at_once_and_sends_each_page_in_one_piece(
    port: int, stage: Stage
) -> None:
    async with connected(port) as client:
        await subscribe(client, EVENTS, "accept-encoding: gzip\r\n")
        assert await client.chunk() == sse.HEARTBEAT
        page = sse.write(b'{"n":1}', id=1) + sse.write(b'{"n":2}', id=2)
        stage.sessions.frames.put_nowait(page)
        assert await client.chunk() == page
    assert stage.sessions.calls == [("events", SESSION, -1)]


@pytest.mark.parametrize(
    ("query", "seen", "after"),
    [
        ("", "", -1),
        ("?after=4", "", 4),
        ("?after=", "", 0),
        ("?after=4", "last-event-id: 9\r\n", 9),
        ("?after=9", "last-event-id: 4\r\n", 9),
        ("?after=4", "last-event-id: evt_x\r\n", 4),
        ("?after=4", "last-event-id: 99999999999999999999999\r\n", 4),
        ("", "last-event-id: -3\r\n", -1),
    ],
)
async def test_a_stream_resumes_after_the_newest_event_its_reader_has_seen(
    port: int, stage: Stage, query: str, seen: str, after: int
) -> None:
    async with connected(port) as client:
        await subscribe(client, EVENTS + query, seen)
        await client.chunk()
        stage.sessions.frames.put_nowait(b"data: 1\n\n")
        await client.chunk()
    assert stage.sessions.calls == [("events", SESSION, after)]


async def test_a_quiet_stream_shows_that_it_is_alive_and_loses_nothing(stage: Stage) -> None:
    app = stage.app(settings(heartbeat_seconds=0.02))
    async with listening(app) as (_, port), connected(port) as client:
        await subscribe(client, EVENTS)
        for _ in range(3):
            assert await client.chunk() == sse.HEARTBEAT
        for number in range(20):
            stage.sessions.frames.put_nowait(b"data: %d\n\n" % number)
        got: list[bytes] = []
        while len(got) < 20:
            if (chunk := await client.chunk()) != sse.HEARTBEAT:
                got.append(chunk)
    assert got == [b"data: %d\n\n" % number for number in range(20)]


@requirement("S147")
async def test_a_reader_that_leaves_takes_its_tail_of_the_log_along(
    port: int, stage: Stage
) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with connected(port) as client:
            await subscribe(client, EVENTS)
            stage.sessions.frames.put_nowait(b"data: 1\n\n")
            await client.chunk()
            await client.chunk()
        await stage.sessions.followed_to_the_end.wait()


@requirement("S130")
async def test_a_live_stream_greets_and_then_relays(port: int, stage: Stage) -> None:
    async with connected(port) as client:
        await subscribe(client, "/api/event")
        first = await client.chunk()
        greeting = event(first)
        assert (greeting["type"], greeting["data"]) == ("server.connected", {})
        assert greeting["id"].startswith("evt_")
        assert first.endswith(sse.HEARTBEAT)
        (subscription,) = stage.live.subscriptions
        assert subscription.location is None
        subscription.frames.put_nowait(b'data: {"n":1}\n\ndata: {"n":2}\n\n')
        assert await client.chunk() == b'data: {"n":1}\n\ndata: {"n":2}\n\n'
    async with asyncio.timeout(PATIENCE_SECONDS):
        await stage.live.left.wait()


@requirement("S132")
async def test_a_live_stream_is_bounded_to_the_location_that_is_asked_for(
    port: int, stage: Stage
) -> None:
    async with connected(port) as client:
        await subscribe(client, "/api/event?location[directory]=/a&directory=/a")
        await client.chunk()
    assert stage.live.subscriptions[0].location == LocationRef("/a")


async def test_a_reader_that_lags_is_told_before_it_is_let_go(port: int, stage: Stage) -> None:
    async with connected(port) as client:
        await subscribe(client, "/api/event")
        await client.chunk()
        (subscription,) = stage.live.subscriptions
        subscription.lagged = True
        subscription.frames.put_nowait(None)
        assert event(await client.chunk())["type"] == "server.lagged"
        assert await client.chunk() == b""


@requirement("S130")
async def test_a_server_that_stops_says_so_and_ends_its_streams(stage: Stage) -> None:
    stop, ports = asyncio.Event(), list[int]()
    listens = asyncio.Event()

    def ready(port: int) -> None:
        ports.append(port)
        listens.set()

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(serve(stage.services(), settings(), ready=ready, stop=stop))
        await listens.wait()
        async with connected(ports[0]) as live, connected(ports[0]) as durable:
            await subscribe(live, "/api/event")
            await live.chunk()
            await subscribe(durable, EVENTS)
            await durable.chunk()
            stop.set()
            assert event(await live.chunk())["type"] == "server.instance.disposed"
            assert await live.chunk() == b""
            assert await durable.chunk() == b""


async def test_waiting_for_a_session_ends_when_the_client_gives_up(port: int, stage: Stage) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with connected(port) as client:
            await client.say(
                f"POST /api/session/{SESSION}/wait HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
            )
            await stage.sessions.waiting.wait()
        await stage.sessions.wait_cancelled.wait()


async def test_waiting_for_a_session_is_answered_when_it_is_idle(port: int, stage: Stage) -> None:
    stage.sessions.idle.set()
    assert (await call(port, "POST", f"/api/session/{SESSION}/wait")).status == 204


async def test_a_hundred_readers_share_the_server(port: int, stage: Stage) -> None:
    async def read() -> bytes:
        async with connected(port) as client:
            await subscribe(client, "/api/event")
            await client.chunk()
            for subscription in stage.live.subscriptions:
                subscription.frames.put_nowait(b"data: 1\n\n")
            return await client.chunk()

    got = await asyncio.gather(*(read() for _ in range(100)))
    assert set(got) == {b"data: 1\n\n"}
