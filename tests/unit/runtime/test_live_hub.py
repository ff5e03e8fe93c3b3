"""Instance-wide live events: one ring, any number of readers."""

import asyncio

from perdure.net import sse
from perdure.runtime.live_hub import LiveHub, LiveReader
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import EventID, MessageID, Seq, SessionID
from perdure.schema.live_event import InstanceDisposed, ServerConnected, TextDelta
from perdure.schema.location import LocationRef
from perdure.store.log.event_store import StoredEvent
from perdure.testing import SeededIds
from tests.fixtures import LOCATION, OTHER, SESSION, Facts
from tests.requirements import requirement

ELSEWHERE = LocationRef(directory="/elsewhere")


def delta(text: str, session_id: SessionID = SESSION) -> TextDelta:
    return TextDelta(
        timestamp=1,
        session_id=session_id,
        assistant_message_id=MessageID("msg_1"),
        text_id="t",
        delta=text,
        cursor=len(text),
    )


def parsed(frames: bytes | None) -> list[JsonObject]:
    assert frames is not None
    reader = sse.Reader(bytes_max=16 * 1024 * 1024)
    return [codec.decode_any(frame.data) for frame in reader.feed(frames)]


async def taken(reader: LiveReader) -> list[str]:
    async with asyncio.timeout(5):
        return [event["data"].get("delta") for event in parsed(await reader.next())]


@requirement("S130", "S131")
async def test_readers_hear_everything_from_when_they_came_in_order() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe() as early:
        hub.publish(delta("one"), LOCATION)
        with hub.subscribe() as late:
            hub.publish(delta("two", OTHER), LOCATION)
            hub.publish(delta("three"), ELSEWHERE)
            assert await taken(early) == ["one", "two", "three"]
            assert await taken(late) == ["two", "three"]


async def test_readers_at_the_same_place_share_the_same_bytes() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe() as first, hub.subscribe() as second:
        hub.publish(delta("x" * 1_000), LOCATION)
        hub.publish(delta("y" * 1_000), LOCATION)
        assert await first.next() is await second.next()


async def test_a_reader_of_one_place_hears_what_happens_there_or_nowhere() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe(LOCATION) as reader:
        hub.publish(delta("elsewhere"), ELSEWHERE)
        hub.publish(delta("here"), LOCATION)
        hub.publish(ServerConnected(), None)
        assert await taken(reader) == ["here", None]


async def test_a_reader_of_one_place_sleeps_through_the_rest() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe(LOCATION) as reader:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(taken(reader))
            await asyncio.sleep(0)
            hub.publish(delta("elsewhere"), ELSEWHERE)
            await asyncio.sleep(0)
            assert not reading.done()
            hub.publish(delta("here"), LOCATION)
        assert reading.result() == ["here"]


async def test_the_envelope_says_what_where_and_nothing_durable() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe() as reader:
        hub.publish(delta("a"), LOCATION)
        (event,) = parsed(await reader.next())
    assert event["id"].startswith("evt_")
    assert (event["type"], event["location"]) == (
        "session.next.text.delta",
        {"directory": "/project"},
    )
    assert "durable" not in event
    assert event["data"]["delta"] == "a"


async def test_a_durable_event_is_heard_with_the_bytes_it_is_stored_with() -> None:
    hub = LiveHub(SeededIds())
    stored = StoredEvent(Seq(1), EventID("evt_1"), Facts().told("msg_1"), b'{"id":"evt_1"}')
    with hub.subscribe() as reader:
        hub.publish_stored(SESSION, (stored, stored), LOCATION)
        assert await reader.next() == b'data: {"id":"evt_1"}\n\n' * 2


@requirement("S132")
async def test_a_reader_that_falls_behind_is_ended_and_nobody_else_notices() -> None:
    hub = LiveHub(SeededIds(), bytes_max=10_000)
    with hub.subscribe() as slow, hub.subscribe() as quick:
        for number in range(100):
            hub.publish(delta(f"{number} " + "x" * 200), LOCATION)
            assert (await taken(quick))[0].startswith(f"{number} ")
        assert await slow.next() is None
        assert slow.lagged
        assert not quick.lagged
        with hub.subscribe() as again:
            hub.publish(delta("fresh"), LOCATION)
            assert await taken(again) == ["fresh"]


async def test_the_ring_is_bounded_by_bytes_and_keeps_even_a_huge_event() -> None:
    hub = LiveHub(SeededIds(), bytes_max=1_000)
    with hub.subscribe() as reader:
        hub.publish(delta("x" * 50_000), LOCATION)
        assert len((await taken(reader))[0]) == 50_000
        for _ in range(1_000):
            hub.publish(delta("y" * 100), LOCATION)
        assert hub.end - hub.start < 10


async def test_nothing_is_made_or_kept_for_nobody() -> None:
    hub = LiveHub(SeededIds())
    assert not hub.has_readers
    hub.publish(delta("unheard"), LOCATION)
    assert hub.start == hub.end == 0
    with hub.subscribe():
        assert hub.has_readers
        hub.publish(delta("heard"), LOCATION)
    assert not hub.has_readers
    assert hub.start == hub.end == 1


@requirement("S130")
async def test_closing_ends_every_reader_after_its_last_event() -> None:
    hub = LiveHub(SeededIds())
    with hub.subscribe() as waiting, hub.subscribe() as reader:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            ends = group.create_task(ended(waiting))
            await asyncio.sleep(0)
            hub.publish(InstanceDisposed(), None)
            hub.close()
        assert ends.result() == ["server.instance.disposed"]
        assert await reader.next() is not None
        assert await reader.next() is None
        assert not reader.lagged
    with hub.subscribe() as late:
        assert await late.next() is None


async def ended(reader: LiveReader) -> list[str]:
    heard: list[str] = []
    while (frames := await reader.next()) is not None:
        heard.extend(event["type"] for event in parsed(frames))
    return heard
