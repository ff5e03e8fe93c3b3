"""Where a commit waits for the disk: a slow one is noticed after a few, a hiccup is forgiven."""

import threading
from threading import Event
from typing import Final

from perdure.store.database.committer import Committer, CommitTimer

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
