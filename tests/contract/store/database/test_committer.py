"""Where a commit waits for the disk: a slow one is noticed after a few, a hiccup is forgiven."""

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


def test_a_few_writes_are_alone_and_those_of_many_sessions_are_not() -> None:
    pace = WritePace()
    now, alone = 1.0, []
    # A Session that writes four times in a row, and then waits for its model.
    for turn in range(100):
        for write in range(4):
            now = 1.0 + turn * 0.013 + write * 0.001
            pace.count(now)
            alone.append(pace.is_alone)
            pace.end(now + 0.0003)
    assert all(alone)
    # Thirty Sessions that write once each in the same 10 ms, again and again.
    alone.clear()
    for _ in range(600):
        now += 0.000_33
        pace.count(now)
        alone.append(pace.is_alone)
        pace.end(now + 0.0001)
    assert not any(alone[30:])
    pace.count(now + 0.1)
    assert pace.is_alone


def test_a_write_right_after_a_commit_waits_for_others() -> None:
    pace = WritePace()
    pace.count(1.0)
    assert pace.is_alone
    pace.end(1.1)
    pace.count(1.1)
    assert not pace.is_alone
