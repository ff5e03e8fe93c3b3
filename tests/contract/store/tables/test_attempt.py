"""How far the request of a run has come, as its table keeps it."""

from collections.abc import Awaitable, Callable

from perdure.core.session.recovery import Attempt
from perdure.ports import Transaction
from perdure.store.log.event_store import EventStore
from perdure.store.tables import attempt_table
from tests.fixtures import OTHER, SESSION

Step = Callable[[Transaction], Awaitable[None]]


async def after(store: EventStore, *steps: Step) -> Attempt | None:
    async def job(tx: Transaction) -> Attempt | None:
        for step in steps:
            await step(tx)
        return await attempt_table.get(tx, SESSION)

    return await store.database.write(job)


def begun(tx: Transaction) -> Awaitable[None]:
    return attempt_table.begin(tx, SESSION)


def dispatched(tx: Transaction) -> Awaitable[None]:
    return attempt_table.put(tx, SESSION, "dispatched", step=4)


def died(tx: Transaction) -> Awaitable[None]:
    return attempt_table.count_death(tx, SESSION)


def waits(tx: Transaction) -> Awaitable[None]:
    return attempt_table.set_waiting(tx, SESSION, "unclear")


async def test_a_run_that_owes_something_goes_on_owing_it(store: EventStore) -> None:
    assert await after(store) is None
    assert await after(store, begun) == Attempt(state="begun", step=1)
    assert await after(store, dispatched, begun) == Attempt(state="dispatched", step=4)
    assert await store.database.read(attempt_table.list_sessions) == [SESSION]
    assert await after(store, lambda tx: attempt_table.clear(tx, OTHER)) is not None
    assert await after(store, lambda tx: attempt_table.clear(tx, SESSION)) is None


async def test_deaths_are_counted_until_a_step_is_settled_or_a_person_is_asked(
    store: EventStore,
) -> None:
    found = await after(store, dispatched, died, died)
    assert found == Attempt(state="dispatched", step=4, deaths=2)
    # The next request of the same run may be what kills it.
    found = await after(store, lambda tx: attempt_table.put(tx, SESSION, "prepared", step=4))
    assert found == Attempt(state="prepared", step=4, deaths=2)
    found = await after(store, lambda tx: attempt_table.settle(tx, SESSION, continues=True))
    assert found == Attempt(state="settled", step=5)
    found = await after(store, waits, died)
    assert found == Attempt(state="settled", step=5, waits="unclear")
    assert await after(store, lambda tx: attempt_table.settle(tx, SESSION, continues=False)) is None


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
        return attempt_table.clear_begun(tx, SESSION)

    assert await after(store, begun, over) is None
    assert await after(store, begun, waits, over) is not None
    assert await after(store, dispatched, over) is not None
