"""The Safe Provider-Turn Boundary: what is settled before a request, in which order."""

import pytest

from perdure.core.context import system_context
from perdure.core.context.system_context import (
    UNAVAILABLE,
    ContextEpoch,
    ContextSource,
    Observation,
    SnapshotDecodeError,
    Unavailable,
)
from perdure.core.session.drain import RunTurn
from perdure.runtime.turn import boundary, turn_input
from perdure.runtime.turn.boundary import Boundary, ContextBlockedError, SessionMovedError
from perdure.runtime.turn.turn_input import TurnInput
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.store.log.event_store import EventStore
from perdure.store.tables import epoch_table
from perdure.testing import ManualClock, SeededIds
from tests.fixtures import OTHER, SESSION, Facts, append, dump, rows
from tests.requirements import requirement

DATE = ContextSource(
    key="core/date",
    type=str,
    baseline=lambda day: f"Today is {day}.",
    update=lambda _, day: f"Today is now {day}.",
)
STEER, QUEUE, NONE = RunTurn("steer", 3), RunTurn("queue", 3), RunTurn("none", 3)


def day(value: str | Unavailable) -> Observation:
    return (system_context.make(DATE, value),)


@pytest.fixture
def crossing(store: EventStore) -> "Crossing":
    return Crossing(store)


class Crossing:
    """Plans and commits boundaries of the one Session."""

    def __init__(self, store: EventStore, seed: int = 7) -> None:
        self._store = store
        self._clock = ManualClock()
        self._ids = SeededIds(seed)

    async def read(self, session_id: SessionID = SESSION) -> TurnInput:
        return await self._store.database.read(lambda tx: turn_input.load(tx, session_id))

    def plan(self, found: TurnInput, turn: RunTurn, seen: Observation) -> Boundary:
        return boundary.plan(found, turn, seen, clock=self._clock, ids=self._ids)

    async def commit(self, found: TurnInput, turn: RunTurn, seen: Observation) -> Boundary:
        planned = self.plan(found, turn, seen)
        await boundary.commit(self._store, planned)
        return planned


async def cross(crossing: Crossing, turn: RunTurn, seen: Observation) -> Boundary:
    return await crossing.commit(await crossing.read(), turn, seen)


async def kinds(store: EventStore, after: int) -> list[str]:
    read = await store.read(SESSION, after=Seq(after), limit=99)
    return [type(event).__name__ for _, _, event in read]


async def stored_epoch(store: EventStore) -> ContextEpoch | None:
    return await store.database.read(lambda tx: epoch_table.get(tx, SESSION))


@requirement("S34", "S54", "S7", "S25")
async def test_the_first_turn_stores_its_baseline_and_tells_nothing_more(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await append(store, [facts.admitted("msg_1")])
    crossed = await cross(crossing, STEER, day("Monday"))
    assert crossed.epoch.baseline == "Today is Monday."
    assert crossed.epoch.baseline_seq == 1
    assert await stored_epoch(store) == crossed.epoch
    assert await kinds(store, 1) == ["PromptPromoted"]
    assert await rows(store, "SELECT type FROM session_message") == [("user",)]


@requirement("S35", "S34", "S66")
async def test_a_blocked_first_baseline_leaves_the_prompt_pending(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await append(store, [facts.admitted("msg_1")])
    before = await dump(store)
    with pytest.raises(ContextBlockedError, match="core/date"):
        await cross(crossing, STEER, day(UNAVAILABLE))
    assert await dump(store) == before
    assert await stored_epoch(store) is None
    crossed = await cross(crossing, STEER, day("Monday"))
    assert crossed.step == 1
    assert await kinds(store, 1) == ["PromptPromoted"]


@requirement("S33", "S5", "S28", "S29", "S10")
async def test_a_change_is_told_after_the_promoted_input_and_the_snapshot_moves_with_it(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    first = await cross(crossing, NONE, day("Monday"))
    await append(store, [facts.admitted("msg_1")])
    second = await cross(crossing, STEER, day("Tuesday"))
    assert await kinds(store, 1) == ["PromptPromoted", "ContextUpdated"]
    told = await rows(store, "SELECT data FROM session_message WHERE type = 'system'")
    assert '"Today is now Tuesday."' in str(told[0][0])
    assert second.epoch.baseline == first.epoch.baseline
    assert '"Tuesday"' in second.epoch.snapshot
    assert await stored_epoch(store) == second.epoch


@requirement("S50", "S55")
async def test_what_was_told_is_not_told_again(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await cross(crossing, NONE, day("Monday"))
    changed = await cross(crossing, NONE, day("Tuesday"))
    again = Crossing(store, seed=8)
    retried = await cross(again, NONE, day("Tuesday"))
    assert retried.epoch == changed.epoch
    assert await kinds(store, 0) == ["ContextUpdated"]


@requirement("S9")
async def test_what_cannot_be_seen_later_changes_nothing(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    first = await cross(crossing, NONE, day("Monday"))
    assert (await cross(crossing, NONE, day(UNAVAILABLE))).epoch == first.epoch
    assert await kinds(store, 0) == []


@requirement("S36", "S58", "S6")
async def test_after_a_compaction_the_baseline_is_made_anew_at_its_place(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await cross(crossing, NONE, day("Monday"))
    await cross(crossing, NONE, day("Tuesday"))
    compacted = await append(store, [facts.compacted("msg_c")])
    crossed = await cross(crossing, NONE, day("Tuesday"))
    assert crossed.epoch.baseline == "Today is Tuesday."
    assert crossed.epoch.baseline_seq == crossed.compaction == compacted.last_seq
    assert (await cross(crossing, NONE, day("Tuesday"))).epoch == crossed.epoch


@requirement("S43")
async def test_a_new_baseline_that_is_blocked_leaves_the_old_one(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    first = await cross(crossing, NONE, day("Monday"))
    await append(store, [facts.compacted("msg_c")])
    assert (await cross(crossing, NONE, day(UNAVAILABLE))).epoch == first.epoch


@requirement("S6", "S42")
async def test_a_source_that_vanishes_for_good_starts_a_new_epoch(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await cross(crossing, NONE, day("Monday"))
    await append(store, [facts.admitted("msg_1")])
    other = ContextSource(key="core/other", type=str, baseline=str, update=lambda _, __: "u")
    crossed = await cross(crossing, NONE, (system_context.make(other, "only this"),))
    assert crossed.epoch.baseline == "only this"
    assert crossed.epoch.baseline_seq == 1


async def test_a_damaged_snapshot_stops_the_turn_and_promotes_nothing(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    damaged = ContextEpoch(baseline="b", baseline_seq=Seq(0), snapshot="{")
    await store.database.write(lambda tx: epoch_table.put(tx, SESSION, damaged))
    await append(store, [facts.admitted("msg_1")])
    with pytest.raises(SnapshotDecodeError):
        await cross(crossing, STEER, day("Monday"))
    assert await kinds(store, 1) == []


@requirement("S68", "S69", "S67")
@pytest.mark.parametrize(
    ("turn", "promoted", "step"),
    [
        (NONE, [], 3),
        (STEER, ["msg_a", "msg_c"], 1),
        (QUEUE, ["msg_b", "msg_a", "msg_c"], 1),
    ],
)
async def test_a_boundary_promotes_what_its_turn_asks_for(
    store: EventStore,
    facts: Facts,
    crossing: Crossing,
    turn: RunTurn,
    promoted: list[str],
    step: int,
) -> None:
    await append(
        store,
        [
            facts.admitted("msg_a"),
            facts.admitted("msg_b", "q", "queue"),
            facts.admitted("msg_c"),
            facts.admitted("msg_d", "q", "queue"),
        ],
    )
    crossed = await cross(crossing, turn, day("Monday"))
    found = await rows(store, "SELECT id FROM session_message ORDER BY seq")
    assert [row[0] for row in found] == promoted
    assert crossed.step == step


@requirement("S12")
async def test_a_promoted_message_has_the_time_of_its_admission(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    admitted = facts.admitted("msg_1")
    await append(store, [admitted])
    await cross(crossing, STEER, day("Monday"))
    assert await rows(store, "SELECT time_created FROM session_message") == [(admitted.timestamp,)]


async def test_a_session_that_is_not_there_is_named(store: EventStore, crossing: Crossing) -> None:
    with pytest.raises(SessionNotFoundError, match=OTHER):
        await crossing.read(OTHER)


@requirement("S86")
async def test_agent_and_model_are_those_of_when_the_turn_began(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    found = await crossing.read()
    await append(store, [facts.stamped(events.AgentSwitched, message_id="msg_x", agent="plan")])
    crossed = await crossing.commit(found, NONE, day("Monday"))
    assert crossed.session == found.session
    assert (await crossing.read()).session.agent == "plan"


@requirement("S61", "S62")
async def test_a_boundary_is_not_crossed_for_a_session_that_has_moved_meanwhile(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await append(store, [facts.admitted("msg_1")])
    found = await crossing.read()
    await append(store, [facts.stamped(events.Moved, location=LocationRef(directory="/new"))])
    before = await dump(store)
    with pytest.raises(SessionMovedError):
        await crossing.commit(found, STEER, day("Monday"))
    assert await dump(store) == before
    assert await stored_epoch(store) is None
    await cross(crossing, STEER, day("Monday"))
    assert await kinds(store, 2) == ["PromptPromoted"]


@requirement("S61")
async def test_an_epoch_alone_is_not_stored_for_a_session_that_has_moved_meanwhile(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    found = await crossing.read()
    await append(store, [facts.stamped(events.Moved, location=LocationRef(directory="/new"))])
    with pytest.raises(SessionMovedError):
        await crossing.commit(found, NONE, day("Monday"))
    assert await stored_epoch(store) is None


@requirement("S141")
async def test_a_plan_says_what_crossing_would_do_and_does_nothing(
    store: EventStore, facts: Facts, crossing: Crossing
) -> None:
    await cross(crossing, NONE, day("Monday"))
    await append(store, [facts.admitted("msg_1")])
    found = await crossing.read()
    before = await dump(store)
    plan = crossing.plan(found, STEER, day("Tuesday"))
    assert await dump(store) == before
    assert [type(fact).__name__ for fact in plan.facts] == ["PromptPromoted", "ContextUpdated"]
    await boundary.commit(store, plan)
    assert await kinds(store, 1) == ["PromptPromoted", "ContextUpdated"]
