"""One drain for each Session at a time: woken, waited for, interrupted and closed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from perdure.runtime.coordination.coordinator import DrainInterruptedError, RunCoordinator
from perdure.schema.ids import SessionID
from tests.fixtures import OTHER, SESSION
from tests.requirements import requirement


class Drains:
    """Drains that wait until they are told how to end."""

    def __init__(self) -> None:
        self.started: list[SessionID] = []
        self.statuses: list[tuple[str, str | None]] = []
        self.cleaned = 0
        self.fail_with: Exception | None = None
        self.during: list[SessionID] = []
        self._gates: list[asyncio.Event] = []
        self._began = asyncio.Event()
        self.cleanup = asyncio.Event()
        self.cleanup.set()
        self.coordinator = RunCoordinator(
            self.drain, status=lambda _, status, message: self.statuses.append((status, message))
        )

    async def drain(self, session_id: SessionID) -> None:
        self.started.append(session_id)
        gate = asyncio.Event()
        self._gates.append(gate)
        self._began.set()
        for key in self.during:
            self.coordinator.wake(key)
        self.during = []
        try:
            await gate.wait()
        finally:
            await self.cleanup.wait()
            self.cleaned += 1
        if self.fail_with is not None:
            failure, self.fail_with = self.fail_with, None
            raise failure

    def finish(self, number: int) -> None:
        self._gates[number].set()

    async def until_started(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.started) < count:
                self._began.clear()
                await self._began.wait()


@pytest.fixture
async def drains() -> AsyncIterator[Drains]:
    drains = Drains()
    yield drains
    await drains.coordinator.close()
    assert drains.coordinator.active == ()


@requirement("S14", "S142")
async def test_waking_an_idle_session_drains_it(drains: Drains) -> None:
    async with asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        idle = group.create_task(drains.coordinator.wait_until_idle(SESSION))
        await drains.until_started(1)
        assert drains.started == [SESSION]
        assert drains.coordinator.active == (SESSION,)
        assert not idle.done()
        drains.finish(0)
    assert drains.coordinator.active == ()
    assert drains.statuses == [("running", None), ("idle", None)]


@requirement("S71")
async def test_wakes_during_a_drain_become_one_more_that_waiters_wait_for(drains: Drains) -> None:
    async with asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        idle = group.create_task(drains.coordinator.wait_until_idle(SESSION))
        await drains.until_started(1)
        for _ in range(5):
            drains.coordinator.wake(SESSION)
        drains.finish(0)
        await drains.until_started(2)
        assert not idle.done()
        assert drains.coordinator.active == (SESSION,)
        drains.finish(1)
    assert drains.started == [SESSION, SESSION]
    assert drains.statuses == [("running", None), ("idle", None)]


async def test_a_drain_that_wakes_itself_does_not_recurse(drains: Drains) -> None:
    drains.during = [SESSION]
    drains.coordinator.wake(SESSION)
    await drains.until_started(1)
    assert len(drains.started) == 1
    drains.finish(0)
    await drains.until_started(2)
    drains.finish(1)
    await drains.coordinator.wait_until_idle(SESSION)
    assert len(drains.started) == 2


async def test_different_sessions_drain_at_the_same_time(drains: Drains) -> None:
    drains.coordinator.wake(SESSION)
    drains.coordinator.wake(OTHER)
    await drains.until_started(2)
    assert set(drains.coordinator.active) == {SESSION, OTHER}


async def test_a_failed_drain_is_reported_and_ends_the_wait(drains: Drains) -> None:
    drains.fail_with = ValueError("broken")
    drains.coordinator.wake(SESSION)
    await drains.until_started(1)
    drains.finish(0)
    await drains.coordinator.wait_until_idle(SESSION)
    assert drains.coordinator.active == ()
    assert drains.statuses[-1] == ("failed", "broken")


async def test_a_failure_of_exclusive_work_reaches_its_caller(drains: Drains) -> None:
    async def work(_: SessionID) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await drains.coordinator.run_exclusively(SESSION, work)
    assert drains.statuses[-1] == ("failed", "broken")


async def test_a_wake_before_a_failure_still_gets_a_drain_of_its_own(drains: Drains) -> None:
    drains.fail_with = ValueError("broken")
    drains.coordinator.wake(SESSION)
    await drains.until_started(1)
    drains.coordinator.wake(SESSION)
    drains.finish(0)
    await drains.until_started(2)
    assert ("failed", "broken") in drains.statuses
    assert drains.started == [SESSION, SESSION]
    assert drains.coordinator.active == (SESSION,)


@requirement("S139")
async def test_interrupting_an_idle_session_is_harmless(drains: Drains) -> None:
    await drains.coordinator.interrupt(SESSION)
    await drains.coordinator.interrupt(SESSION)
    assert drains.started == []


async def test_an_interrupt_returns_when_the_drain_has_cleaned_up(drains: Drains) -> None:
    drains.cleanup.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        await drains.until_started(1)
        drains.coordinator.wake(SESSION)
        interrupts = [group.create_task(drains.coordinator.interrupt(SESSION)) for _ in range(2)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(task.done() for task in interrupts)
        drains.cleanup.set()
    assert drains.cleaned == 1
    # The wake before it was dropped with the work it asked for.
    assert len(drains.started) == 1
    assert drains.statuses == [("running", None), ("idle", None)]


async def test_a_wake_during_cleanup_is_honoured_afterwards(drains: Drains) -> None:
    drains.cleanup.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        await drains.until_started(1)
        group.create_task(drains.coordinator.interrupt(SESSION))
        await asyncio.sleep(0)
        drains.coordinator.wake(SESSION)
        drains.cleanup.set()
        await drains.until_started(2)
    assert drains.started == [SESSION, SESSION]


async def test_a_drain_interrupted_before_it_began_gets_to_what_must_not_be_cut(
    drains: Drains,
) -> None:
    """It may have been woken to settle what a dead process left open."""
    async with asyncio.timeout(5):
        drains.coordinator.wake(SESSION)
        await drains.coordinator.interrupt(SESSION)
        assert (drains.started, drains.cleaned) == ([SESSION], 1)
        assert drains.coordinator.active == ()
        drains.coordinator.wake(SESSION)
        await drains.until_started(2)


async def test_cancelling_a_waiter_cancels_nothing_else(drains: Drains) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        first = group.create_task(drains.coordinator.wait_until_idle(SESSION))
        second = group.create_task(drains.coordinator.wait_until_idle(SESSION))
        await drains.until_started(1)
        first.cancel()
        await asyncio.sleep(0)
        assert drains.coordinator.active == (SESSION,)
        assert not second.done()
        drains.finish(0)
    assert first.cancelled()
    assert drains.cleaned == 1


async def test_waiting_until_idle_outlasts_follow_ups_and_failures(drains: Drains) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        await drains.coordinator.wait_until_idle(SESSION)
        drains.coordinator.wake(SESSION)
        idle = group.create_task(drains.coordinator.wait_until_idle(SESSION))
        await drains.until_started(1)
        drains.coordinator.wake(SESSION)
        drains.fail_with = ValueError("broken")
        drains.finish(0)
        await drains.until_started(2)
        assert not idle.done()
        drains.finish(1)


async def test_exclusive_work_waits_for_the_drain_and_holds_back_the_next(drains: Drains) -> None:
    order: list[str] = []
    proceed = asyncio.Event()
    working = asyncio.Event()

    async def work(session_id: SessionID) -> str:
        order.append(f"work after {drains.cleaned}")
        working.set()
        await proceed.wait()
        return session_id

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        await drains.until_started(1)
        done = group.create_task(drains.coordinator.run_exclusively(SESSION, work))
        drains.finish(0)
        await working.wait()
        drains.coordinator.wake(SESSION)
        await asyncio.sleep(0)
        assert drains.coordinator.active == (SESSION,)
        assert (order, len(drains.started)) == (["work after 1"], 1)
        proceed.set()
        assert await done == SESSION
        await drains.until_started(2)
        drains.finish(1)


async def test_exclusive_work_never_runs_twice_at_once(drains: Drains) -> None:
    running = 0

    async def work(_: SessionID) -> int:
        nonlocal running
        running += 1
        seen = running
        await asyncio.sleep(0)
        running -= 1
        return seen

    exclusive = (drains.coordinator.run_exclusively(SESSION, work) for _ in range(20))
    async with asyncio.timeout(5):
        assert await asyncio.gather(*exclusive) == [1] * 20


async def test_interrupting_exclusive_work_tells_its_caller(drains: Drains) -> None:
    working = asyncio.Event()

    async def work(_: SessionID) -> None:
        working.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        interrupted = group.create_task(refused(drains.coordinator.run_exclusively(SESSION, work)))
        await working.wait()
        await drains.coordinator.interrupt(SESSION)
        assert await interrupted
    assert drains.coordinator.active == ()
    assert drains.statuses == [("running", None), ("idle", None)]


async def test_exclusive_work_is_refused_while_closing(drains: Drains) -> None:
    await drains.coordinator.close()

    async def work(_: SessionID) -> None:
        raise AssertionError

    assert await refused(drains.coordinator.run_exclusively(SESSION, work))


async def refused(work: Awaitable[None]) -> bool:
    """Whether it was interrupted instead of done."""
    try:
        await work
    except DrainInterruptedError:
        return True
    return False


async def test_closing_interrupts_everything_and_starts_nothing_more(drains: Drains) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        drains.coordinator.wake(SESSION)
        drains.coordinator.wake(OTHER)
        await drains.until_started(2)
        drains.cleanup.clear()
        closing = group.create_task(drains.coordinator.close())
        await asyncio.sleep(0)
        drains.coordinator.wake(SESSION)
        drains.cleanup.set()
        await closing
        drains.coordinator.wake(SESSION)
    assert {status for status, _ in drains.statuses} == {"running", "idle"}
    assert len(drains.started) == 2
    assert drains.coordinator.active == ()


async def test_closing_does_not_wait_for_a_run_that_comes_to_a_question(drains: Drains) -> None:
    parked: set[SessionID] = set()
    asked: list[int] = []

    def look() -> set[SessionID]:
        asked.append(len(parked))
        if len(asked) == 2:
            parked.add(SESSION)
        return parked

    drains.coordinator.wake(SESSION)
    await drains.until_started(1)
    async with asyncio.timeout(30):
        await drains.coordinator.close(grace_seconds=3_600, parked=look)
    assert asked[:2] == [0, 0]
    assert drains.coordinator.active == ()


async def test_closing_lets_a_run_come_to_its_end_beside_one_that_waits(drains: Drains) -> None:
    drains.coordinator.wake(SESSION)
    drains.coordinator.wake(OTHER)
    await drains.until_started(2)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        closing = group.create_task(
            drains.coordinator.close(grace_seconds=3_600, parked=lambda: {OTHER})
        )
        await asyncio.sleep(0)
        assert not closing.done()
        drains.finish(0)
    assert drains.cleaned == 2


@requirement("S189")
@pytest.mark.parametrize("grace_seconds", [0, 0.001])
async def test_who_waits_for_a_person_is_asked_before_the_rest_is_cancelled(
    drains: Drains, grace_seconds: float
) -> None:
    cleaned: list[int] = []

    def look() -> frozenset[SessionID]:
        cleaned.append(drains.cleaned)
        return frozenset()

    drains.coordinator.wake(SESSION)
    await drains.until_started(1)
    await drains.coordinator.close(grace_seconds=grace_seconds, parked=look)
    assert cleaned == [0] * (2 if grace_seconds else 1)
    assert drains.cleaned == 1
