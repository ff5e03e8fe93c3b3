"""What waits for a person: seen and answered through any, kept until its call ends."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from perdure.ports import DatabaseError, UniqueViolationError
from perdure.schema.approval.pending import (
    AnswersGiven,
    AnswersRefused,
    PermissionWord,
    StoredRequest,
)
from perdure.schema.approval.permission import PermissionRequest, PermissionSource
from perdure.schema.approval.question import Question, QuestionRequest
from perdure.schema.ids import MessageID, PermissionID, QuestionID, SessionID, ToolCallID
from perdure.schema.location import LocationRef
from perdure.store.log.event_store import EventStore
from perdure.store.tables import pending_table
from perdure.store.tables.pending_table import PendingRequests
from perdure.testing import ManualClock
from tests.fixtures import LOCATION, OTHER, SESSION, Facts, append, rows
from tests.harness.faults.database import DatabaseFault, DatabasePlan, FaultyDatabase

ONCE = PermissionWord(reply="once")


@dataclass
class Town:
    """Processes that know of each other."""

    living: set[str] = field(default_factory=lambda: {"a", "b", "c"})


@dataclass
class Resident:
    town: Town
    me: str

    def alive(self, process: str) -> bool:
        return process in self.town.living

    def others(self) -> frozenset[str]:
        return frozenset(self.town.living - {self.me})

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {}


@pytest.fixture
def town() -> Town:
    return Town()


def living(store: EventStore, town: Town, name: str) -> PendingRequests:
    return PendingRequests(store.database, Resident(town, name))


def permission(name: str = "per_1", session_id: SessionID = SESSION) -> PermissionRequest:
    return PermissionRequest(PermissionID(name), session_id, "bash", ("ls",))


def question(name: str = "que_1") -> QuestionRequest:
    return QuestionRequest(QuestionID(name), SESSION, (Question("Which?", "Which", ()),))


async def seen(requests: PendingRequests) -> list[str]:
    return [row.request.id for row in await requests.list_elsewhere("permission")]


async def test_other_processes_see_what_waits_until_it_is_answered(
    store: EventStore, town: Town
) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    await a.for_location(LOCATION).add(permission())
    await a.for_location(LOCATION).add(permission("per_2", OTHER))
    await a.for_location(LOCATION).add(question())
    assert await seen(b) == ["per_1", "per_2"]
    assert await seen(a) == []
    (row,) = await b.list_elsewhere("question")
    assert (row.request, row.location, row.process) == (question(), LOCATION, "a")
    assert await b.answer("per_1", SESSION, ONCE)
    assert await seen(b) == ["per_2"]
    (answered,) = await a.list_answered()
    assert (answered.request.id, answered.answer) == ("per_1", ONCE)
    assert await b.list_answered() == []
    await a.for_location(LOCATION).remove(["per_1", "per_2", "per_unknown"])
    assert await seen(b) == []
    assert [row.request.id for row in await b.list_elsewhere("question")] == ["que_1"]


async def test_words_are_heard_in_the_order_in_which_was_asked(
    store: EventStore, town: Town
) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    for name in ("per_2", "per_1"):
        await a.add(permission(name), LOCATION)
    for name in ("per_1", "per_2"):
        assert await b.answer(name, SESSION, ONCE)
    assert [row.request.id for row in await a.list_answered()] == ["per_2", "per_1"]
    every = await store.database.read(pending_table.list_all)
    assert [(row.request.id, row.answer) for row in every] == [("per_2", ONCE), ("per_1", ONCE)]


async def test_of_many_words_the_first_counts(store: EventStore, town: Town) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    await a.add(question(), LOCATION)
    words = [AnswersGiven(answers=((str(number),),)) for number in range(8)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(b.answer("que_1", SESSION, word)) for word in words]
    assert [task.result() for task in tasks].count(True) == 1
    (row,) = await a.list_answered()
    assert row.answer == words[[task.result() for task in tasks].index(True)]


async def test_a_word_for_nobody_is_not_taken(store: EventStore, town: Town) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    await a.add(question(), LOCATION)
    assert not await b.answer("que_unknown", SESSION, AnswersRefused())
    assert not await b.answer("que_1", OTHER, AnswersRefused())
    # An answer is stored for a process that lives, for one that is gone, and for this one.
    assert await a.answer("que_1", SESSION, AnswersRefused())
    assert not await b.answer("que_1", SESSION, AnswersRefused())
    await a.add(question("que_2"), LOCATION)
    town.living.discard("a")
    assert await b.answer("que_2", SESSION, AnswersRefused())


async def test_a_request_without_a_call_is_taken_from_a_dead_process_once(
    store: EventStore, town: Town
) -> None:
    a, b, c = (living(store, town, name) for name in "abc")
    await a.add(permission(), LOCATION)
    assert await b.take_orphan("per_1") is None
    town.living.discard("a")
    assert await seen(c) == ["per_1"]
    async with asyncio.TaskGroup() as group:
        taking = [group.create_task(process.take_orphan("per_1")) for process in (b, c, b, c)]
    assert sum(task.result() is not None for task in taking) == 1
    assert await b.take_orphan("per_unknown") is None


async def asking(store: EventStore) -> PermissionRequest:
    """The request of a call that runs, written by one process."""
    facts = Facts()
    step = [facts.step("msg_turn"), facts.input_started("msg_turn", "call_1")]
    await append(store, [facts.created(), *step, facts.called("msg_turn", "call_1")])
    source = PermissionSource(
        type="tool", message_id=MessageID("msg_turn"), call_id=ToolCallID("call_1")
    )
    return replace(permission(), source=source)


async def test_the_request_of_a_call_is_adopted_with_its_answer_when_its_process_is_gone(
    store: EventStore, town: Town
) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    request = await asking(store)
    await a.add(request, LOCATION)
    again = replace(request, id=PermissionID("per_again"))
    assert await b.adopt(again, LOCATION) == StoredRequest(None)
    town.living.discard("a")
    assert await b.answer("per_1", SESSION, ONCE)
    adopted = await b.adopt(again, LOCATION)
    assert adopted is not None
    assert (adopted.request, adopted.void) == (request, ())
    assert await b.claim("per_1") == ONCE
    assert await seen(b) == []


async def test_a_call_that_changed_does_not_find_its_request(store: EventStore, town: Town) -> None:
    a, b = living(store, town, "a"), living(store, town, "b")
    request = await asking(store)
    await a.add(request, LOCATION)
    town.living.discard("a")
    moved = LocationRef(directory="/else")
    found = await b.adopt(replace(request, id=PermissionID("per_again")), moved)
    # What was shown is not what would be done: the old request is void.
    assert found is not None
    assert (found.request, found.void) == (None, (request,))
    assert await rows(store, "SELECT id FROM pending_request") == []


async def test_the_requests_of_a_call_end_with_it(store: EventStore, town: Town) -> None:
    a = living(store, town, "a")
    await a.add(await asking(store), LOCATION)
    await a.use("per_1")
    await a.remove(["per_1"])
    assert await rows(store, "SELECT id, used FROM pending_request") == [("per_1", 1)]
    await append(store, [Facts().succeeded("msg_turn", "call_1")])
    assert await rows(store, "SELECT id FROM pending_request") == []


async def test_an_id_waits_once_in_all_processes(store: EventStore, town: Town) -> None:
    await living(store, town, "a").add(permission(), LOCATION)
    with pytest.raises(UniqueViolationError):
        await living(store, town, "b").add(permission(session_id=OTHER), LOCATION)


async def test_a_store_that_fails_keeps_a_request_but_fails_nobody_who_is_done(
    store: EventStore, town: Town
) -> None:
    plan = DatabasePlan(writes=lambda number: DatabaseFault(fails="before") if number > 1 else None)
    failing = FaultyDatabase(store.database, plan, clock=ManualClock())
    requests = PendingRequests(failing, Resident(town, "a"))
    await requests.add(permission(), LOCATION)
    await requests.remove(["per_1"])
    with pytest.raises(DatabaseError):
        await requests.add(permission("per_2"), LOCATION)
    assert await rows(store, "SELECT id FROM pending_request") == [("per_1",)]
