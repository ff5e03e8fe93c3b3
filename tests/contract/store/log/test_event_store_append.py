"""Writing the log: whole or not at all, without gaps, heard in order."""

import asyncio
from pathlib import Path

import pytest

from perdure.core.context.system_context import ContextEpoch
from perdure.ports import DatabaseError, Transaction, UniqueViolationError
from perdure.schema import codec
from perdure.schema.errors import PromptConflictError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import PromptAdmitted, SessionEvent
from perdure.store.log.event_store import NO_EVENTS, EventStore, SequenceConflictError, StoredEvent
from perdure.store.tables import epoch_table
from tests.fixtures import (
    LOCATION,
    OTHER,
    SESSION,
    Facts,
    answered,
    append,
    dump,
    opened_store,
    rows,
)
from tests.requirements import requirement


class Listener:
    def __init__(self, store: EventStore) -> None:
        self.heard: list[tuple[SessionID, int]] = []
        store.listen(self.hear)

    def hear(
        self, session_id: SessionID, events: tuple[StoredEvent, ...], _: LocationRef | None
    ) -> None:
        self.heard.extend((session_id, event.seq) for event in events)


async def sequences(store: EventStore, session_id: SessionID = SESSION) -> list[int]:
    return [seq for seq, _, _ in await store.read(session_id, limit=10_000)]


@requirement("S154", "S158")
async def test_sequences_start_at_zero_and_have_no_gap(store: EventStore) -> None:
    facts = Facts()
    assert await store.latest(SESSION) == NO_EVENTS
    await append(store, [facts.created()])
    appended = await append(store, answered(facts, "msg_1", "msg_2", "hi"))
    assert [event.seq for event in appended.events] == list(range(1, 7))
    assert await sequences(store) == list(range(7))


@requirement("S155")
async def test_what_is_read_is_what_was_written(store: EventStore, facts: Facts) -> None:
    written: list[SessionEvent] = answered(facts, "msg_1", "msg_2", "snow ☃")
    await append(store, written)
    assert [event for _, _, event in await store.read(SESSION, after=Seq(0), limit=99)] == written


async def test_a_page_of_the_log_starts_after_its_cursor(store: EventStore, facts: Facts) -> None:
    await append(store, answered(facts, "msg_1", "msg_2", "hi"))
    page = await store.read_wire(SESSION, after=Seq(2), limit=3)
    assert [seq for seq, _ in page] == [3, 4, 5]
    assert await store.read_wire(SESSION, after=Seq(6), limit=3) == []
    assert await store.read_wire(OTHER, after=NO_EVENTS, limit=3) == []


async def test_the_public_form_is_the_same_live_and_read_back(
    store: EventStore, facts: Facts
) -> None:
    (stored,) = (await append(store, [facts.admitted("msg_1", 'say "hi"')])).events
    ((_, wire),) = await store.read_wire(SESSION, after=Seq(0), limit=1)
    assert wire == stored.wire
    assert codec.decode_any(wire) == {
        "id": stored.id,
        "type": "session.next.prompt.admitted",
        "durable": {"aggregateID": SESSION, "seq": 1, "version": 1},
        "location": {"directory": "/project"},
        "data": codec.to_json_value(stored.event),
    }


async def test_events_without_a_place_say_none(store: EventStore, facts: Facts) -> None:
    event = facts.admitted("msg_1")
    (stored,) = (await store.append(SESSION, [event], location=None)).events
    ((_, wire),) = await store.read_wire(SESSION, after=Seq(0), limit=1)
    assert "location" not in codec.decode_any(wire)
    assert wire == stored.wire


async def test_a_place_first_named_by_a_failed_append_is_not_taken_for_known(
    store: EventStore, facts: Facts
) -> None:
    await append(store, [facts.admitted("msg_1")])
    places = [LocationRef(directory=f"/place/{number}") for number in range(3)]
    with pytest.raises(PromptConflictError):
        await store.append(SESSION, [facts.admitted("msg_1")], location=places[0])
    for number, place in enumerate([*places, *reversed(places)]):
        await store.append(SESSION, [facts.admitted(f"msg_{number}_")], location=place)
    page = await store.read_wire(SESSION, after=Seq(1), limit=9)
    named = [codec.decode_any(wire)["location"]["directory"] for _, wire in page]
    assert named == [place.directory for place in (*places, *reversed(places))]


@requirement("S67", "S76")
async def test_a_batch_with_one_bad_event_leaves_no_trace(store: EventStore, facts: Facts) -> None:
    await append(store, answered(facts, "msg_1", "msg_2", "hi"))
    before, log = await dump(store), await sequences(store)
    listener = Listener(store)
    bad = [facts.admitted("msg_3"), facts.step("msg_4"), facts.admitted("msg_1")]
    with pytest.raises(PromptConflictError):
        await append(store, bad)
    assert (await dump(store), await sequences(store)) == (before, log)
    assert listener.heard == []


async def test_a_bad_append_does_not_harm_the_ones_it_shares_a_commit_with(
    store: EventStore, facts: Facts
) -> None:
    others = [Facts(SessionID(f"ses_{number}")) for number in range(8)]
    outcomes = await asyncio.gather(
        *(append(store, [one.created()], one.session_id) for one in others[:4]),
        append(store, [facts.admitted("msg_1"), facts.created()]),
        *(append(store, [one.created()], one.session_id) for one in others[4:]),
        return_exceptions=True,
    )
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(failed) == 1
    assert isinstance(failed[0], UniqueViolationError)
    assert await sequences(store) == [0]
    assert all([await sequences(store, one.session_id) == [0] for one in others])


async def test_two_creators_of_one_message_are_refused_in_one_batch_and_in_two(
    store: EventStore, facts: Facts
) -> None:
    with pytest.raises(UniqueViolationError):
        await append(store, [facts.told("msg_1"), facts.told("msg_1")])
    await append(store, [facts.told("msg_1")])
    with pytest.raises(UniqueViolationError):
        await append(store, [facts.step("msg_1")])
    assert await sequences(store) == [0, 1]


async def test_a_writer_that_is_behind_is_refused(store: EventStore, facts: Facts) -> None:
    await append(store, [facts.admitted("msg_1")])
    for wrong in (-1, 0, 2):
        with pytest.raises(SequenceConflictError) as caught:
            await store.append(
                SESSION, [facts.admitted("msg_2")], location=LOCATION, expected=Seq(wrong)
            )
        assert (caught.value.expected, caught.value.found) == (wrong, 1)
    await store.append(SESSION, [facts.admitted("msg_2")], location=LOCATION, expected=Seq(1))


async def test_of_many_that_create_one_session_exactly_one_wins(store: EventStore) -> None:
    outcomes = await asyncio.gather(
        *(
            store.append(SESSION, [Facts().created()], location=LOCATION, expected=NO_EVENTS)
            for _ in range(8)
        ),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if isinstance(one, SequenceConflictError)]
    assert len(refused) == 7
    assert await sequences(store) == [0]


EPOCH = ContextEpoch(baseline="b", baseline_seq=Seq(1), snapshot="{}")


@requirement("S29")
async def test_operational_state_commits_with_its_events_or_not_at_all(
    store: EventStore, facts: Facts
) -> None:
    told: list[int] = []

    async def put(tx: Transaction, seq: Seq) -> None:
        told.append(seq)
        await epoch_table.put(tx, SESSION, EPOCH)

    async def break_down(tx: Transaction, seq: Seq) -> None:
        await put(tx, seq)
        raise RuntimeError("no")

    events = [facts.admitted("msg_1"), facts.admitted("msg_2")]
    with pytest.raises(RuntimeError):
        await store.append(SESSION, events, location=LOCATION, within=break_down)
    assert await rows(store, "SELECT * FROM session_context_epoch") == []
    assert await sequences(store) == [0]
    await store.append(SESSION, events, location=LOCATION, within=put)
    assert await rows(store, "SELECT baseline FROM session_context_epoch") == [("b",)]
    assert told == [2, 2]


async def test_listeners_hear_every_commit_in_order(store: EventStore) -> None:
    listener = Listener(store)
    sessions = [Facts(SessionID(f"ses_{number}")) for number in range(6)]
    async with asyncio.TaskGroup() as group:
        for one in sessions:
            group.create_task(append(store, [one.created()], one.session_id))
    async with asyncio.TaskGroup() as group:
        for turn in range(5):
            for one in sessions:
                event = one.admitted(f"msg_{one.session_id}_{turn}")
                group.create_task(append(store, [event], one.session_id))
    for one in sessions:
        mine = [seq for session_id, seq in listener.heard if session_id == one.session_id]
        assert mine == list(range(6))


async def test_a_cancelled_append_that_was_accepted_is_committed_and_heard(
    store: EventStore, facts: Facts
) -> None:
    heard = asyncio.Event()
    store.listen(lambda _, events, ___: heard.set() if events[-1].seq == 2 else None)
    async with asyncio.TaskGroup() as group:
        # The second waits for the first, which is written at once.
        group.create_task(append(store, [facts.admitted("msg_1")]))
        task = group.create_task(append(store, [facts.admitted("msg_2")]))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    async with asyncio.timeout(5):
        await heard.wait()
    assert await sequences(store) == [0, 1, 2]


async def test_a_listener_that_fails_is_reported_and_holds_up_nobody(
    store: EventStore, facts: Facts
) -> None:
    reported: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context["message"]))

    def broken(*_: object) -> None:
        raise RuntimeError("listener")

    store.listen(broken)
    async with asyncio.timeout(5):
        await append(store, [facts.admitted("msg_1")])
        await append(store, [facts.admitted("msg_2")])
    loop.set_exception_handler(None)
    assert reported == ["a commit listener failed"] * 2
    assert await sequences(store) == [0, 1, 2]


async def test_everything_acknowledged_is_there_after_opening_again(tmp_path: Path) -> None:
    facts = Facts()
    path = tmp_path / "again.db"
    async with opened_store(path) as store:
        await append(store, [facts.created(), *answered(facts, "msg_1", "msg_2", "hi")])
        before = await dump(store)
    async with opened_store(path) as store:
        assert await dump(store) == before
        assert await sequences(store) == list(range(7))


async def test_a_closed_store_refuses_writes_and_does_not_hang(tmp_path: Path) -> None:
    async with opened_store(tmp_path / "p.db") as store:
        pass
    async with asyncio.timeout(5):
        with pytest.raises(DatabaseError):
            await append(store, [Facts().created()])
        with pytest.raises(DatabaseError):
            await store.latest(SESSION)


async def test_a_huge_event_makes_the_round_trip(store: EventStore, facts: Facts) -> None:
    text = "☃" * 4_000_000
    await append(store, [facts.admitted("msg_1", text)])
    ((_, _, event),) = await store.read(SESSION, after=Seq(0), limit=1)
    assert isinstance(event, PromptAdmitted)
    assert event.prompt.text == text
