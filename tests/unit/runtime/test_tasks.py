"""A region that an interrupt cannot cut."""

import asyncio

import pytest

from perdure.runtime.tasks import shielded


class Work:
    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.finished = False

    async def run(self) -> str:
        self.started.set()
        await self.release.wait()
        self.finished = True
        return "done"


async def test_what_is_shielded_returns_its_result() -> None:
    work = Work()
    work.release.set()
    assert await shielded(work.run()) == "done"


@pytest.mark.parametrize("cancels", [1, 2, 5])
async def test_it_runs_to_its_end_however_often_it_is_cancelled(cancels: int) -> None:
    work = Work()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(shielded(work.run()))
        await work.started.wait()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        work.release.set()
    assert work.finished
    assert task.cancelled()


async def test_a_failure_reaches_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await shielded(fail())


async def test_a_failure_is_not_hidden_by_a_cancellation() -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        entered.set()
        await release.wait()
        raise ValueError("broken")

    async def run() -> None:
        with pytest.raises(ValueError, match="broken"):
            await shielded(fail())

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        release.set()


async def test_work_that_cancels_itself_is_cancelled() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await shielded(give_up())
