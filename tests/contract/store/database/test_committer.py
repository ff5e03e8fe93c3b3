"""Where a commit waits for the disk: a slow one is noticed after a few, a hiccup is forgiven."""

import asyncio
import threading
from threading import Event
from typing import Final

from perdure.store.database.committer import Committer, CommitTimer, WritePace

SLOW_SECONDS: Final = 0.02
COMMITS_MAX: Final = 1_000


def commit(pace: CommitTimer, seconds: float = 0) -> None:
    with pace:
        Event().wait(seconds)


def test_a_disk_counts_as_quick_until_it_is_slow_and_again_when_it_was_a_hiccup() -> None:
    observed: list[float] = []
    pace = CommitTimer(observed.append)
    assert pace.is_quick
    commit(pace, SLOW_SECONDS)
    assert not pace.is_quick
    quick = 0
    while not pace.is_quick and quick < COMMITS_MAX:
        commit(pace)
        quick += 1
    assert pace.is_quick
    assert quick > 1
    assert SLOW_SECONDS * 0.9 <= observed[0] < 60
    assert len(observed) == quick + 1
    assert min(observed) >= 0


async def test_stopping_waits_for_what_is_under_way_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    committer = Committer()
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon, "a disk that never answers would keep the process from ending"
    done: list[str] = []

    def work() -> None:
        Event().wait(SLOW_SECONDS)
        done.append("work")

    committer.submit(work, lambda failure: None)
    committer.stop()
    assert done == ["work"]
    assert not thread.is_alive()


async def is_alone(pace: WritePace, now: float) -> bool:
    """Whether a write in a round of its own is alone."""
    await asyncio.sleep(0)
    return pace.is_alone(now)


async def test_a_few_writes_are_alone_and_those_of_many_sessions_are_not() -> None:
    pace = WritePace()
    # A Session that writes four times in a row, and then waits for its model.
    moments = [turn * 0.013 + write * 0.001 for turn in range(50) for write in range(4)]
    assert all([await is_alone(pace, now) for now in moments])
    # Thirty Sessions that write once each in the same 10 ms, again and again.
    crowd = [await is_alone(pace, 1 + number * 0.000_33) for number in range(600)]
    assert not any(crowd[30:])
    assert await is_alone(pace, 1.3)


async def test_of_the_writes_of_one_round_only_the_first_is_alone() -> None:
    pace = WritePace()
    assert [pace.is_alone(1.0) for _ in range(3)] == [True, False, False]
    assert await is_alone(pace, 1.0)
