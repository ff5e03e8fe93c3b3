"""A store that fails: what is retried, what is given up, and how often it is logged."""

import asyncio
import logging

import pytest

from perdure.core import limits
from perdure.ports import DatabaseError
from perdure.runtime.database_errors import TolerateFailure, retry_until_stored
from perdure.testing.manual_clock import ManualClock


class Store:
    """Fails a number of times, then works."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    async def work(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise DatabaseError("the disk is full")
        return "done"


async def test_work_is_retried_at_a_fixed_interval_until_the_store_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock, store = ManualClock(), Store(failures=3)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(
            retry_until_stored(store.work, what="finishing deletions", clock=clock)
        )
        for calls in (1, 2, 3):
            await clock.until_sleeps(calls)
            assert store.calls == calls
            clock.advance(limits.STORAGE_RETRY_SECONDS)
    assert task.result() == "done"
    assert [record.getMessage() for record in caplog.records] == [
        "finishing deletions failed and is retried: the disk is full",
        "finishing deletions works again",
    ]


async def test_work_that_succeeds_at_once_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = Store(failures=0)
    assert await retry_until_stored(store.work, what="x", clock=ManualClock()) == "done"
    assert caplog.records == []


async def test_another_error_is_not_retried() -> None:
    async def work() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        await retry_until_stored(work, what="x", clock=ManualClock())


@pytest.mark.parametrize("error", [DatabaseError("the disk is full"), LookupError("a bad row")])
def test_what_can_be_left_undone_is_logged_and_left(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with TolerateFailure("the title is not stored", LookupError):
        raise error
    assert [record.getMessage() for record in caplog.records] == [
        f"the title is not stored: {error}"
    ]


def test_a_defect_travels() -> None:
    with pytest.raises(ValueError, match="a defect"), TolerateFailure("x"):
        raise ValueError("a defect")
