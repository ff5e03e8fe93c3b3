"""The durable stream replays and follows; the live stream tells of everything as it happens."""

import asyncio

from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api, Stream
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

LIVE = "/api/event"


def seqs(events: list[JsonObject]) -> list[int]:
    return [event["durable"]["seq"] for event in events]


@requirement("S129", "S152", "S153", "S154", "S163")
async def test_a_stream_opened_before_the_run_tells_the_whole_of_it(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("bash", {"command": "true"})), text("a", "b", "c"))
    session = await api.create()
    async with api.events(session) as stream:
        await api.prompt(session, "go")
        told = await stream.until("step.ended", finish="stop")
    assert told == await api.history(session)
    assert not any(event["type"].endswith(".delta") for event in told)


@requirement("S129", "S154", "S163")
async def test_replay_and_tail_have_no_gap_and_no_repetition(api: Api) -> None:
    session = await api.create()
    await api.ask(session, "one")
    middle = len(await api.history(session)) // 2
    async with api.events(session, after=middle) as stream:
        await api.ask(session, "two")
        told = await stream.until("step.ended")
        if told[-1]["durable"]["seq"] < 12:
            told += await stream.until("step.ended")
    assert seqs(told) == list(range(middle + 1, 13))


@requirement("S134")
async def test_readers_of_one_session_each_get_everything(api: Api) -> None:
    session = await api.create()

    async def follow() -> list[int]:
        async with api.events(session) as stream:
            ready.release()
            return seqs(await stream.until("step.ended"))

    ready = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(follow()) for _ in range(10)]
        for _ in readers:
            await ready.acquire()
        await api.prompt(session, "go")
    assert all(reader.result() == [1, 2, 3, 4, 5, 6] for reader in readers)


@requirement("S154")
async def test_a_reader_that_reconnects_goes_on_where_it_was(api: Api) -> None:
    session = await api.create()
    await api.ask(session, "go")
    path = f"/api/session/{session}/event?after=0"
    async with api.stream(path, {"last-event-id": "4"}) as stream:
        heartbeat, first = await stream.frame(), await stream.frame()
    assert heartbeat is not None
    assert first is not None
    assert (first.id, first.event["durable"]["seq"]) == ("5", 5)


async def test_an_event_id_that_is_no_sequence_is_ignored(api: Api) -> None:
    session = await api.create()
    await api.prompt(session, "go", resume=False)
    for junk in ("-1", "x", "9" * 40, "1.5", "\u0663"):
        path = f"/api/session/{session}/event"
        headers = {"last-event-id": junk.encode().decode("latin-1")}
        async with api.stream(path, headers) as stream:
            assert (await stream.event())["durable"]["seq"] == 1


async def test_a_durable_stream_says_something_at_once(api: Api) -> None:
    session = await api.create()
    async with api.events(session) as stream:
        first = await stream.frame()
    assert first is not None
    assert first.is_comment
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["cache-control"] == "no-cache, no-transform"
    assert stream.headers["x-accel-buffering"] == "no"


async def test_a_quiet_stream_shows_that_it_is_alive(folders: ProjectFolders) -> None:
    async with running(folders, heartbeat_seconds=0.02) as instance:
        session = await instance.api.create()
        for path in (f"/api/session/{session}/event", LIVE):
            async with instance.api.stream(path) as stream:
                frames = [await stream.frame() for _ in range(5)]
            assert sum(frame is not None and frame.is_comment for frame in frames) >= 4


@requirement("S129")
async def test_a_stream_of_an_unknown_session_is_refused_before_it_starts(api: Api) -> None:
    answer = await api.call("GET", "/api/session/ses_unknown/event")
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


@requirement("S130", "S131")
async def test_the_live_stream_greets_then_tells_of_every_session(
    api: Api, provider: ScriptedProvider
) -> None:
    one, other = await api.create(), await api.create()
    async with api.stream(LIVE) as stream:
        assert (await stream.event())["type"] == "server.connected"
        await api.ask(one, "a")
        await api.ask(other, "b")
        told = await stream.until("session.status", sessionID=other, status={"type": "idle"})
    about = [event["data"].get("sessionID") for event in told]
    assert {one, other} <= set(about)


@requirement("S130", "S152")
async def test_fragments_are_live_only_and_add_up_to_what_is_stored(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("one ", "two ", "three", reasoning=("so ", "then")))
    session = await api.create()
    async with api.stream(LIVE) as stream:
        await stream.event()
        await api.prompt(session, "count")
        told = await stream.until("step.ended")
    kinds = [event["type"].removeprefix("session.next.") for event in told]
    said = [e["data"]["delta"] for e in told if e["type"].endswith("text.delta")]
    thought = [e["data"]["delta"] for e in told if e["type"].endswith("reasoning.delta")]
    assert "".join(said) == "one two three"
    assert "".join(thought) == "so then"
    assert kinds.index("text.started") < kinds.index("text.delta") < kinds.index("text.ended")
    assert all("durable" not in e for e in told if e["type"].endswith(".delta"))
    assert not any(kind.endswith(".delta") for kind in await api.facts(session))


@requirement("S130")
async def test_a_live_fact_can_already_be_read(api: Api) -> None:
    session = await api.create()
    async with api.stream(LIVE) as stream:
        await stream.event()
        await api.prompt(session, "go")
        for event in await stream.until("step.ended"):
            if "durable" in event:
                seq = event["durable"]["seq"]
                page = await api.get(f"/api/session/{session}/history?after={seq - 1}&limit=1")
                assert page["data"][0]["id"] == event["id"]


async def test_a_run_is_announced_when_it_starts_and_when_it_ends(api: Api) -> None:
    session = await api.create()
    async with api.stream(LIVE) as stream:
        await stream.event()
        await api.prompt(session, "go")
        busy, idle = {"type": "busy"}, {"type": "idle"}
        before = await stream.until("session.status", sessionID=session, status=busy)
        after = await stream.until("session.status", sessionID=session, status=idle)
    assert not any(event["type"] == "session.next.prompted" for event in before)
    assert after[-2]["type"] == "session.next.step.ended"


@requirement("S130")
async def test_nothing_that_happened_before_is_in_the_live_stream(api: Api) -> None:
    session = await api.create()
    await api.ask(session, "before")
    async with api.stream(LIVE) as stream:
        await stream.event()
        await api.prompt(session, "after")
        told = await stream.until("step.ended")
    first = next(event for event in told if "durable" in event)
    assert first["durable"]["seq"] > 6


@requirement("S130")
async def test_a_reader_that_falls_behind_is_told_and_nobody_else_notices(api: Api) -> None:
    session = await api.create()
    async with api.stream(LIVE) as slow, api.stream(LIVE) as quick:
        await slow.event()
        # More than the ring and every socket buffer on the way can hold.
        large = "x" * 3_000_000
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_admissions(quick, 16))
            for _ in range(16):
                await api.prompt(session, large, resume=False)
        last = await _last_event(slow)
    assert reading.result() == list(range(1, 17))
    assert last["type"] == "server.lagged"
    assert last["data"]["reason"]
    assert len(await api.history(session)) == 16


@requirement("S130")
async def test_a_server_that_stops_says_goodbye_on_its_streams(folders: ProjectFolders) -> None:
    async with running(folders) as instance:
        session = await instance.api.create()
        path = f"/api/session/{session}/event"
        async with instance.api.stream(LIVE) as live, instance.api.stream(path) as durable:
            await live.event()
            instance.stop.set()
            assert (await live.event())["type"] == "server.instance.disposed"
            assert await live.frame() is None
            while (frame := await durable.frame()) is not None:
                assert frame.is_comment


@requirement("S154", "S155")
async def test_a_restart_changes_nothing_that_was_told(folders: ProjectFolders) -> None:
    async with running(folders) as before:
        session = await before.api.create()
        await before.api.ask(session, "hello")
        history = await before.api.history(session)
        messages = await before.api.messages(session)
    async with running(folders) as after:
        assert await after.api.history(session) == history
        assert await after.api.messages(session) == messages
        async with after.api.events(session) as stream:
            assert await stream.until("step.ended") == history


async def _admissions(stream: Stream, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        event = await stream.event()
        if event["type"] == "session.next.prompt.admitted":
            found.append(event["durable"]["seq"])
    return found


async def _last_event(stream: Stream) -> JsonObject:
    last: JsonObject = {}
    while (frame := await stream.frame()) is not None:
        if not frame.is_comment:
            last = frame.event
    return last
