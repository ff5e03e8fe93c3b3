"""Taking in a log that was written elsewhere."""

import pytest
from msgspec.structs import replace

from perdure.schema import codec, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.errors import PromptConflictError
from perdure.schema.ids import EventID, Seq
from perdure.schema.session.event import SessionEvent
from perdure.store.log import import_log
from perdure.store.log.event_store import EventStore
from perdure.store.log.import_log import ReplayedEvent, ReplayError
from tests.fixtures import OTHER, SESSION, Facts, append, dump, rows
from tests.requirements import requirement
from tests.support import every_table


def envelopes(events: list[SessionEvent], first: int = 0) -> list[ReplayedEvent]:
    return [
        ReplayedEvent(
            id=EventID(f"evt_outside_{seq}"),
            type=manifest.definition_of(event).stored,
            seq=Seq(seq),
            session_id=event.session_id,
            data=codec.to_json_value(event),
        )
        for seq, event in enumerate(events, first)
    ]


def log() -> list[ReplayedEvent]:
    facts = Facts()
    return envelopes([facts.created(), facts.admitted("msg_1"), facts.promoted("msg_1")])


def with_data(event: ReplayedEvent, **changed: object) -> ReplayedEvent:
    data: JsonObject = {**event.data, **changed}
    return replace(event, data=data)


async def owner(store: EventStore) -> list[object]:
    return [row[0] for row in await rows(store, "SELECT owner FROM event_owner")]


async def state(store: EventStore) -> object:
    log = await rows(store, "SELECT session_id, seq, id, type, data FROM event ORDER BY 1, 2")
    return log, await dump(store), await owner(store)


@requirement("S164", "S155")
async def test_a_log_from_elsewhere_is_projected_like_our_own(store: EventStore) -> None:
    assert await import_log.replay_all(store, log()) == SESSION
    assert await store.latest(SESSION) == 2
    assert await rows(store, "SELECT id, seq FROM session_message") == [("msg_1", 2)]
    assert await rows(store, "SELECT admitted_seq, promoted_seq FROM session_input") == [(1, 2)]


async def test_the_same_log_again_changes_nothing(store: EventStore) -> None:
    await import_log.replay_all(store, log())
    before = await state(store)
    assert await import_log.replay_all(store, log()) == SESSION
    assert await import_log.replay(store, log()[1]) is False
    assert await state(store) == before


async def test_a_later_piece_may_come_by_itself(store: EventStore) -> None:
    await import_log.replay_all(store, log()[:1])
    assert await import_log.replay_all(store, log()[1:]) == SESSION
    assert await store.latest(SESSION) == 2


async def test_no_events_are_no_session(store: EventStore) -> None:
    assert await import_log.replay_all(store, []) is None


@requirement("S164")
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (replace(log()[1], type="session.next.text.delta.1"), "unknown durable event"),
        (replace(log()[1], type="session.next.prompt.admitted.9"), "unknown durable event"),
        (with_data(log()[1], sessionID=OTHER), "its payload"),
        (with_data(log()[1], prompt=3), "prompt"),
        (replace(log()[1], data={}), "missing required field"),
        (with_data(log()[1], prompt={"text": "\ud800"}), "surrogates"),
        (replace(log()[1], seq=Seq(2)), "sequence mismatch"),
        (replace(log()[1], seq=Seq(7)), "sequence mismatch"),
        (replace(log()[0], seq=Seq(1)), "begins with"),
        (replace(log()[1], seq=Seq(0)), "begins with"),
        (replace(log()[0], id=EventID("evt_another")), "diverged"),
        (with_data(log()[0], extra=True), "diverged"),
        (replace(log()[1], id=EventID("evt_outside_0")), "is taken"),
        (replace(log()[1], id=EventID('evt_"},')), "malformed id"),
        (replace(log()[1], id=EventID("msg_1")), "malformed id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_does_not_fit_is_refused_and_changes_nothing(
    store: EventStore, event: ReplayedEvent, reason: str
) -> None:
    await import_log.replay(store, log()[0])
    before = await state(store)
    with pytest.raises(ReplayError, match=reason):
        await import_log.replay(store, event)
    assert await state(store) == before


@requirement("S164")
async def test_an_envelope_for_another_session_changes_neither(store: EventStore) -> None:
    await import_log.replay(store, log()[0])
    await append(store, [Facts(OTHER).created()], OTHER)
    before = await state(store)
    with pytest.raises(ReplayError):
        await import_log.replay(store, replace(log()[1], session_id=OTHER))
    assert await state(store) == before


async def test_a_piece_with_a_gap_or_of_two_sessions_is_refused_whole(store: EventStore) -> None:
    first, second, third = log()
    foreign = envelopes([Facts(OTHER).admitted("msg_9")], 1)[0]
    for broken in ([first, third], [second, first], [first, first], [first, foreign]):
        with pytest.raises(ReplayError):
            await import_log.replay_all(store, broken)
    assert await rows(store, "SELECT 1 FROM event") == []


async def test_an_event_that_our_projections_refuse_is_not_taken_in(store: EventStore) -> None:
    await append(store, [Facts(OTHER).created(), Facts(OTHER).admitted("msg_1")], OTHER)
    await import_log.replay(store, log()[0])
    before = await state(store)
    with pytest.raises(PromptConflictError):
        await import_log.replay(store, log()[1])
    assert await state(store) == before


@requirement("S164")
async def test_the_first_owner_of_an_unowned_log_claims_it(store: EventStore) -> None:
    first, second, _ = log()
    await import_log.replay(store, first)
    assert await owner(store) == []
    await import_log.replay(store, first, owner="a")
    assert await owner(store) == ["a"]
    await import_log.replay(store, second, owner="a")
    assert await store.latest(SESSION) == 1


@requirement("S164")
async def test_a_new_log_belongs_to_whoever_brought_it(store: EventStore) -> None:
    await import_log.replay(store, log()[0], owner="a", strict=True)
    assert await owner(store) == ["a"]


@requirement("S164")
@pytest.mark.parametrize("stranger", ["b", None])
async def test_later_events_of_another_owner_are_left_out(
    store: EventStore, stranger: str | None
) -> None:
    first, second, _ = log()
    await import_log.replay(store, first, owner="a")
    before = await state(store)
    assert await import_log.replay(store, second, owner=stranger) is False
    assert await import_log.replay(store, first, owner=stranger) is False
    assert await state(store) == before


@requirement("S164")
async def test_a_strict_caller_is_told_of_another_owner(store: EventStore) -> None:
    first, second, _ = log()
    await import_log.replay(store, first, owner="a")
    for event in (first, second):
        with pytest.raises(ReplayError, match="owner mismatch"):
            await import_log.replay(store, event, owner="b", strict=True)


async def test_a_claim_changes_the_owner(store: EventStore) -> None:
    first, second, _ = log()
    await import_log.replay(store, first, owner="a")
    await import_log.claim(store, SESSION, "b")
    assert await owner(store) == ["b"]
    assert await import_log.replay(store, second, owner="b") is True


async def test_live_readers_hear_of_a_replay_only_when_asked(store: EventStore) -> None:
    live: list[int] = []
    every: list[int] = []
    store.listen(lambda _, events, __: live.extend(event.seq for event in events), live=True)
    store.listen(lambda _, events, __: every.extend(event.seq for event in events))
    first, second, third = log()
    await import_log.replay(store, first)
    await import_log.replay(store, second, publish=True)
    await import_log.replay(store, second, publish=True)
    await import_log.replay(store, third)
    assert (live, every) == ([1], [0, 1, 2])


@pytest.mark.parametrize("publish", [None, False, True])
async def test_a_whole_log_comes_in_silence_unless_asked(
    store: EventStore, publish: bool | None
) -> None:
    live: list[int] = []
    store.listen(lambda _, events, __: live.extend(event.seq for event in events), live=True)
    if publish is None:
        await import_log.replay_all(store, log())
    else:
        await import_log.replay_all(store, log(), publish=publish)
    assert live == ([0, 1, 2] if publish else [])


async def test_a_removed_session_leaves_nothing_and_may_come_again(store: EventStore) -> None:
    await import_log.replay_all(store, log(), owner="a")
    await append(store, [Facts(OTHER).created()], OTHER)
    for session_id in (SESSION, OTHER):
        await store.database.write(lambda tx, one=session_id: every_table.occupy(tx, one))
    await import_log.remove(store, SESSION)
    assert await store.database.read(lambda tx: every_table.occupied(tx, SESSION)) == []
    theirs = await store.database.read(lambda tx: every_table.occupied(tx, OTHER))
    assert theirs == await store.database.read(every_table.naming_sessions)
    assert await rows(store, "SELECT id FROM session") == [(OTHER,)]
    assert await import_log.replay_all(store, log(), owner="b") == SESSION
