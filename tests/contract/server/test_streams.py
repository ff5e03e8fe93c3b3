"""Both event streams over a real connection: first byte, heartbeat, resume, the end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from perdure.core import limits
from perdure.net import sse
from perdure.protocol.session.session import FollowEvents
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.live_event import StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.status import SessionIdle
from perdure.server.app import HANDLERS
from perdure.server.call import Call
from perdure.server.handlers import session
from perdure.server.results import DurableStream
from perdure.server.serve import serve
from tests.contract.server.served_runtime import QUICK, SESSION, Backend
from tests.requirements import requirement
from tests.support.polling import until
from tests.support.raw_http import PATIENCE_SECONDS, RawClient, call, connected
from tests.support.scripted_provider import text

EVENTS = f"/api/session/{SESSION}/event"


def events(chunk: bytes) -> list[JsonObject]:
    frames = sse.Reader(bytes_max=1_000_000).feed(chunk)
    return [codec.decode_any(frame.data) for frame in frames]


def event(chunk: bytes) -> JsonObject:
    (only,) = events(chunk)
    return only


def status(text: str) -> StatusChanged:
    return StatusChanged(session_id=SESSION, status=SessionIdle(message=text))


async def read_seqs(client: RawClient, count: int) -> list[int]:
    """The sequences of the next durable events, past heartbeats."""
    seqs: list[int] = []
    while len(seqs) < count:
        chunk = await client.chunk()
        if chunk not in {sse.HEARTBEAT, sse.REPLAYED}:
            seqs += [each["durable"]["seq"] for each in events(chunk)]
    return seqs


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
async def port(backend: Backend) -> AsyncGenerator[int]:
    async with backend.port(limits=QUICK) as number:
        yield number


@requirement("S129")
async def test_a_durable_stream_begins_at_once_and_sends_each_page_in_one_piece(
    port: int, backend: Backend
) -> None:
    async with connected(port) as client:
        await subscribe(client, EVENTS, "accept-encoding: gzip\r\n")
        assert await client.chunk() == sse.HEARTBEAT
        assert await client.chunk() == sse.REPLAYED
        await backend.add_messages(SESSION, 2)
        stored, _ = await backend.runtime.sessions.history(SESSION, after=0, limit=10)
        page = b"".join(sse.write(wire, id=seq) for seq, wire in enumerate(stored, 1))
        assert await client.chunk() == page


@pytest.mark.parametrize(
    ("query", "seen", "first"),
    [
        ("", "", 1),
        ("?after=4", "", 5),
        ("?after=", "", 1),
        ("?after=4", "last-event-id: 9\r\n", 10),
        ("?after=9", "last-event-id: 4\r\n", 10),
        ("?after=4", "last-event-id: evt_x\r\n", 5),
        ("?after=4", "last-event-id: 99999999999999999999999\r\n", 5),
        ("", "last-event-id: -3\r\n", 1),
    ],
)
async def test_a_stream_resumes_after_the_newest_event_its_reader_has_seen(
    port: int, backend: Backend, query: str, seen: str, first: int
) -> None:
    await backend.add_messages(SESSION, 12)
    async with connected(port) as client:
        await subscribe(client, EVENTS + query, seen)
        assert await read_seqs(client, 13 - first) == list(range(first, 13))


async def test_a_quiet_stream_shows_that_it_is_alive_and_loses_nothing(backend: Backend) -> None:
    given = backend.settings(heartbeat_seconds=0.02)
    async with backend.port(given) as port, connected(port) as client:
        await subscribe(client, EVENTS)
        while await client.chunk() != sse.REPLAYED:
            pass
        for _ in range(3):
            assert await client.chunk() == sse.HEARTBEAT
        for number in range(20):
            await backend.runtime.changes.rename(SESSION, f"title {number}")
        assert await read_seqs(client, 20) == list(range(1, 21))


@requirement("S147")
async def test_a_reader_that_leaves_takes_its_tail_of_the_log_along(backend: Backend) -> None:
    ended = asyncio.Event()

    async def watch(frames: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        try:
            async for page in frames:
                yield page
        finally:
            ended.set()

    async def followed(call: Call[FollowEvents, None]) -> DurableStream[SessionEvent]:
        return DurableStream(watch((await session.events(call)).frames))

    handlers = {**HANDLERS, "v2.session.events": followed}
    async with asyncio.timeout(PATIENCE_SECONDS), backend.port(handlers=handlers) as port:
        async with connected(port) as client:
            await subscribe(client, EVENTS)
            await backend.add_messages(SESSION, 1)
            assert await read_seqs(client, 1) == [1]
        await ended.wait()


@requirement("S130")
async def test_a_live_stream_greets_and_then_relays(port: int, backend: Backend) -> None:
    hub = backend.runtime.hub
    async with connected(port) as client:
        await subscribe(client, "/api/event")
        first = await client.chunk()
        greeting = event(first)
        assert (greeting["type"], greeting["data"]) == ("server.connected", {})
        assert greeting["id"].startswith("evt_")
        assert first.endswith(sse.HEARTBEAT)
        hub.publish(status("one"), None)
        hub.publish(status("two"), LocationRef("/elsewhere"))
        told = events(await client.chunk())
        assert [each["data"]["status"]["message"] for each in told] == ["one", "two"]
    await until(lambda: not hub.has_readers)


@requirement("S132")
async def test_a_live_stream_is_bounded_to_the_location_that_is_asked_for(
    port: int, backend: Backend
) -> None:
    async with connected(port) as client:
        await subscribe(client, "/api/event?location[directory]=/a&directory=/b")
        await client.chunk()
        backend.runtime.hub.publish(status("elsewhere"), LocationRef("/b"))
        backend.runtime.hub.publish(status("here"), LocationRef("/a"))
        assert event(await client.chunk())["data"]["status"]["message"] == "here"


async def test_a_reader_that_lags_is_told_before_it_is_let_go(port: int, backend: Backend) -> None:
    large = status("x" * 1024 * 1024)
    async with connected(port) as client:
        await subscribe(client, "/api/event")
        await client.chunk()
        # At once, so that the reader is not served in between.
        for _ in range(limits.LIVE_RING_BYTES_MAX // 1024 // 1024 + 1):
            backend.runtime.hub.publish(large, None)
        assert event(await client.chunk())["type"] == "server.lagged"
        assert await client.chunk() == b""


@requirement("S130")
async def test_a_server_that_stops_says_so_and_ends_its_streams(backend: Backend) -> None:
    stop, ports = asyncio.Event(), list[int]()
    listens = asyncio.Event()

    def ready(port: int) -> None:
        ports.append(port)
        listens.set()

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(serve(backend.runtime, backend.settings(), ready=ready, stop=stop))
        await listens.wait()
        async with connected(ports[0]) as live, connected(ports[0]) as durable:
            await subscribe(live, "/api/event")
            await live.chunk()
            await subscribe(durable, EVENTS)
            assert await durable.chunk() == sse.HEARTBEAT
            assert await durable.chunk() == sse.REPLAYED
            stop.set()
            assert event(await live.chunk())["type"] == "server.instance.disposed"
            assert await live.chunk() == b""
            assert await durable.chunk() == b""


async def test_waiting_for_a_session_ends_when_the_client_gives_up(backend: Backend) -> None:
    hold, waiting, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
    backend.provider.then(text("working", hold=hold))

    async def wait(call: Call[None, None]) -> None:
        waiting.set()
        try:
            await session.wait(call)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    handlers = {**HANDLERS, "v2.session.wait": wait}
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        backend.port(limits=QUICK, handlers=handlers) as port,
    ):
        await call(port, "POST", f"/api/session/{SESSION}/prompt", b'{"prompt":{"text":"hi"}}')
        await backend.provider.arrived(1)
        async with connected(port) as client:
            await client.say(
                f"POST /api/session/{SESSION}/wait HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
            )
            await waiting.wait()
        await cancelled.wait()
        assert backend.runtime.sessions.active() == (SESSION,)
        hold.set()


async def test_waiting_for_a_session_is_answered_when_it_is_idle(port: int) -> None:
    assert (await call(port, "POST", f"/api/session/{SESSION}/wait")).status == 204


async def test_a_hundred_readers_share_the_server(port: int, backend: Backend) -> None:
    listen = asyncio.Barrier(101)

    async def read() -> bytes:
        async with connected(port) as client:
            await subscribe(client, "/api/event")
            await client.chunk()
            await listen.wait()
            return await client.chunk()

    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(read()) for _ in range(100)]
        await listen.wait()
        backend.runtime.hub.publish(status("one"), None)
    assert len({reader.result() for reader in readers}) == 1
    assert event(readers[0].result())["data"]["status"]["message"] == "one"
