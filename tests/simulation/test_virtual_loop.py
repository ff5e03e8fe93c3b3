"""The loop beneath a simulation: time jumps, order is drawn, the dead stay dead."""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from tests.harness.simulation.virtual_loop import DeadlockError, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop(Random(7))
    yield made
    made.end_killed_tasks()
    made.close()


def order_of(seed: int) -> list[int]:
    loop = VirtualLoop(Random(seed))
    order: list[int] = []

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(_note(order, number))

    loop.run_until_complete(main())
    loop.close()
    return order


async def _note(order: list[int], number: int) -> None:
    await asyncio.sleep(0)
    order.append(number)


def test_a_day_passes_at_once(loop: VirtualLoop) -> None:
    loop.run_until_complete(asyncio.sleep(86_400))
    assert loop.time() == 86_400


def test_a_seed_is_an_order_and_seeds_differ() -> None:
    orders = [order_of(seed) for seed in range(20)]
    assert orders == [order_of(seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) > 5


def test_waiting_for_nothing_is_reported_as_a_deadlock(loop: VirtualLoop) -> None:
    async def forever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError):
        loop.run_until_complete(forever())


def test_work_for_a_thread_runs_on_the_loop_and_its_failure_arrives(loop: VirtualLoop) -> None:
    def fails() -> None:
        raise OSError("no such disk")

    async def main() -> int:
        with pytest.raises(OSError, match="no such disk"):
            await asyncio.to_thread(fails)
        return await asyncio.to_thread(lambda: 5)

    assert loop.run_until_complete(main()) == 5


def killed_after(callbacks: int) -> list[str]:
    """What a process got done that was killed after so many callbacks."""
    loop = VirtualLoop(Random(1))
    done: list[str] = []

    async def work() -> None:
        try:
            for number in range(3):
                done.append(f"work {number}")
                await asyncio.sleep(1)
        finally:
            done.append("cleanup")

    async def main() -> tuple[str, ...]:
        virtual_process = loop.virtual_process("victim")
        loop.spawn(virtual_process, work())
        loop.kill_after(virtual_process, callbacks)
        await virtual_process.died
        await asyncio.sleep(100)
        return tuple(done)

    result = list(loop.run_until_complete(main()))
    loop.end_killed_tasks()
    loop.close()
    return result


def test_a_killed_process_runs_nothing_more_not_even_its_cleanup() -> None:
    assert killed_after(1) == ["work 0"]
    assert killed_after(3) == ["work 0", "work 1"]


def test_what_others_wait_for_is_told_of_a_death(loop: VirtualLoop) -> None:
    async def main() -> bool:
        virtual_process = loop.virtual_process("victim")
        task = loop.spawn(virtual_process, asyncio.sleep(10))
        loop.call_later(1, loop.kill, virtual_process)
        await asyncio.wait((task, virtual_process.died), return_when=asyncio.FIRST_COMPLETED)
        return task.done()

    assert loop.run_until_complete(main()) is False
    assert loop.time() == 1


def test_an_exception_that_nobody_looks_at_is_a_complaint(loop: VirtualLoop) -> None:
    def fails() -> None:
        raise RuntimeError("lost")

    async def main() -> None:
        loop.call_soon(fails)
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert "lost" in loop.complaints[0]


def test_timers_keep_their_order(loop: VirtualLoop) -> None:
    ends: list[float] = []

    async def end(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ends.append(seconds)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            for seconds in (3.0, 1.0, 2.0):
                group.create_task(end(seconds))

    loop.run_until_complete(main())
    assert ends == [1.0, 2.0, 3.0]
