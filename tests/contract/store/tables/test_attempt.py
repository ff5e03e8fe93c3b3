"""How far the request of a run has come, as its table keeps it."""

from collections.abc import Awaitable, Callable

import pytest

from perdure.core.session.recovery import Attempt
from perdure.ports import Transaction
from perdure.schema.ids import MessageID, Seq
from perdure.store.log.event_store import EventStore
from perdure.store.processes import interrupt_table
from perdure.store.tables import attempt_table, notice_table
from perdure.store.tables.notice_table import Notice
from tests.fixtures import OTHER, SESSION, Facts, append

LATEST = 9
"""A sequence that no event of these tests comes after."""

Step = Callable[[Transaction], Awaitable[None]]


async def after(store: EventStore, *steps: Step) -> Attempt | None:
    async def job(tx: Transaction) -> Attempt | None:
        for step in steps:
            await step(tx)
        return await attempt_table.get(tx, SESSION)

    return await store.database.write(job)


def owed(tx: Transaction) -> Awaitable[None]:
    return attempt_table.owe(tx, SESSION)


def begun(tx: Transaction) -> Awaitable[None]:
    return attempt_table.begin(tx, SESSION)


def dispatched(tx: Transaction) -> Awaitable[None]:
    return attempt_table.put(tx, SESSION, "dispatched", step=4)


async def released(tx: Transaction) -> None:
    await attempt_table.release(tx, SESSION)


def stopped(tx: Transaction) -> Awaitable[None]:
    return attempt_table.stop(tx, SESSION, upto=Seq(LATEST))


def interrupted(tx: Transaction) -> Awaitable[None]:
    return interrupt_table.request(tx, SESSION)


def died(tx: Transaction) -> Awaitable[None]:
    return attempt_table.count_death(tx, SESSION)


async def waits(tx: Transaction) -> None:
    await attempt_table.set_waiting(tx, SESSION, "unclear")


def taken_over(tx: Transaction) -> Awaitable[None]:
    return attempt_table.take_over(tx, SESSION)


async def test_a_run_that_owes_something_goes_on_owing_it(store: EventStore) -> None:
    assert await after(store) is None
    # Nothing begins that no one has asked for.
    assert await after(store, begun) is None
    assert await after(store, owed) == Attempt(state="owed", step=1)
    assert await after(store, begun, owed) == Attempt(state="begun", step=1)
    assert await after(store, dispatched, begun) == Attempt(state="dispatched", step=4)
    assert await store.database.read(attempt_table.list_sessions) == [SESSION]
    assert await after(store, lambda tx: attempt_table.clear(tx, OTHER)) is not None
    assert await after(store, lambda tx: attempt_table.clear(tx, SESSION)) is None


async def test_deaths_are_counted_until_a_step_ends_by_itself_or_a_person_is_asked(
    store: EventStore,
) -> None:
    found = await after(store, dispatched, died, died)
    assert found == Attempt(state="dispatched", step=4, deaths=2)
    # The next request of the same run may be what kills it.
    found = await after(store, lambda tx: attempt_table.put(tx, SESSION, "prepared", step=4))
    assert found == Attempt(state="prepared", step=4, deaths=2)
    # A step that a later process settled is no progress.
    found = await after(store, lambda tx: attempt_table.settle(tx, SESSION, ended=False))
    assert found == Attempt(state="settled", step=5, deaths=2)
    found = await after(store, lambda tx: attempt_table.settle(tx, SESSION, ended=True))
    assert found == Attempt(state="settled", step=6)
    found = await after(store, waits, died)
    assert found == Attempt(state="settled", step=6, waits="unclear")
    assert await after(store, released) is None


async def test_a_run_that_waits_for_a_person_does_not_run(store: EventStore) -> None:
    async def is_running(tx: Transaction) -> bool:
        return await attempt_table.is_running(tx, SESSION)

    assert not await store.database.read(is_running)
    await after(store, dispatched)
    assert await store.database.read(is_running)
    await after(store, waits)
    assert not await store.database.read(is_running)


async def test_to_retry_is_to_begin_anew_and_to_refuse_is_to_give_up(store: EventStore) -> None:
    found = await after(
        store, dispatched, died, waits, lambda tx: attempt_table.decide(tx, SESSION, retry=True)
    )
    assert found == Attempt(state="prepared", step=4)
    found = await after(store, waits, lambda tx: attempt_table.decide(tx, SESSION, retry=False))
    assert found is not None
    assert (found.abandoned, found.waits) == (True, "unclear")
    # Whatever is prepared next is owed again.
    assert await after(store, dispatched) == Attempt(state="dispatched", step=4)


async def test_a_run_that_never_came_to_a_request_is_given_up_with_its_deaths(
    store: EventStore,
) -> None:
    def decided(*, retry: bool) -> Step:
        return lambda tx: attempt_table.decide(tx, SESSION, retry=retry)

    def prompted(tx: Transaction) -> Awaitable[None]:
        return attempt_table.abandon(tx, SESSION, orphaned=False)

    def anew(tx: Transaction) -> Awaitable[None]:
        return attempt_table.begin_anew(tx, SESSION)

    assert await after(store, owed, begun, died, waits, decided(retry=False)) is None
    found = await after(store, owed, begun, died, waits, decided(retry=True))
    assert found == Attempt(state="begun", step=1)
    # New input decides too: what follows is counted from the start.
    found = await after(store, died, waits, prompted, anew, died)
    assert found == Attempt(state="begun", step=1, deaths=1)
    found = await after(store, dispatched, anew)
    assert found == Attempt(state="dispatched", step=4, deaths=1)


async def test_something_new_ends_what_was_orphaned_and_leaves_alone_what_runs(
    store: EventStore,
) -> None:
    def said(*, orphaned: bool) -> Step:
        return lambda tx: attempt_table.abandon(tx, SESSION, orphaned=orphaned)

    running = await after(store, dispatched, said(orphaned=False))
    assert running is not None
    assert not running.abandoned
    dead = await after(store, said(orphaned=True))
    assert dead is not None
    assert dead.abandoned
    waiting = await after(store, dispatched, waits, said(orphaned=False))
    assert waiting is not None
    assert waiting.abandoned


async def test_a_run_that_came_to_nothing_leaves_no_mark(store: EventStore) -> None:
    def over(tx: Transaction) -> Awaitable[None]:
        return attempt_table.end_begun(tx, SESSION)

    assert await after(store, owed, begun, over) is None
    assert await after(store, owed, begun, waits, over) is not None
    assert await after(store, dispatched, over) is not None


@pytest.mark.parametrize("waiting", ["nothing", "prompt", "notice"])
@pytest.mark.parametrize("input_after", [False, True])
@pytest.mark.parametrize("interrupt", [False, True])
async def test_a_run_that_ends_owes_another_while_input_waits_that_was_not_stopped(
    store: EventStore, waiting: str, *, input_after: bool, interrupt: bool
) -> None:
    """After an interrupt only input counts that asked for a run since."""
    facts = Facts()
    admitted = [facts.admitted("msg_p", "later")] if waiting == "prompt" else []
    await append(store, [facts.created(), *admitted])
    if waiting == "notice":
        notice = Notice(id=MessageID("msg_n"), session_id=SESSION, text="over", time_created=1)
        await store.database.write(lambda tx: notice_table.put(tx, notice))
    steps = [owed, dispatched, *([stopped, interrupted] if interrupt else [])]
    found = await after(store, *steps, *([owed] if input_after else []), released)
    owes = waiting != "nothing" and (input_after or not interrupt)
    assert found == (Attempt(state="owed", step=1) if owes else None)


async def test_an_interrupt_takes_back_what_has_not_begun(store: EventStore) -> None:
    assert await after(store, owed, stopped) is None
    assert await after(store, stopped) is None
    assert await after(store, dispatched, stopped) == Attempt(state="dispatched", step=4)
    # What waits for a person goes on waiting, and nothing newer gives it up.
    found = await after(store, waits, lambda tx: attempt_table.abandon(tx, SESSION, orphaned=False))
    assert found is not None
    assert found.abandoned
    found = await after(store, stopped)
    assert found is not None
    assert (found.waits, found.abandoned) == ("unclear", False)


async def test_a_run_that_is_only_owed_does_not_run_and_dies_with_no_process(
    store: EventStore,
) -> None:
    assert await after(store, owed, died) == Attempt(state="owed", step=1)
    assert not await store.database.read(lambda tx: attempt_table.is_running(tx, SESSION))
    assert await after(store, begun, died) == Attempt(state="begun", step=1, deaths=1)
    assert await store.database.read(lambda tx: attempt_table.is_running(tx, SESSION))


async def test_what_is_asked_for_after_an_interrupt_has_begun_is_not_stopped(
    store: EventStore,
) -> None:
    facts = Facts()
    await append(store, [facts.created(), facts.admitted("msg_a"), facts.admitted("msg_b")])

    def stopped_at(seq: int) -> Step:
        return lambda tx: attempt_table.stop(tx, SESSION, upto=Seq(seq))

    assert await after(store, owed, stopped_at(1)) == Attempt(state="owed", step=1)
    assert await after(store, owed, stopped_at(2)) is None


async def test_input_that_arrives_while_a_run_is_taken_over_is_not_left_to_a_person(
    store: EventStore,
) -> None:
    """What waited before the crash is older than the request, and decides nothing about it."""

    def prompted(tx: Transaction) -> Awaitable[None]:
        return attempt_table.abandon(tx, SESSION, orphaned=False)

    found = await after(store, dispatched, prompted, taken_over, waits)
    assert found is not None
    assert (found.waits, found.abandoned) == ("unclear", False)
    found = await after(store, dispatched, taken_over, prompted, waits)
    assert found is not None
    assert (found.waits, found.abandoned) == ("unclear", True)
    assert await after(store, released, owed, taken_over) == Attempt(state="begun", step=1)
