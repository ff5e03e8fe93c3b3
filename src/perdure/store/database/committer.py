"""Commit timing, the pace of writes, waits for the lock, and the thread for a slow disk.

A COMMIT runs on the event loop while the disk is quick and in the Committer's thread while it is
slow; `CommitTimer` tells which. What is committed is decided in `sqlite`.
"""

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

import apsw

from perdure.ports import DatabaseError

Failure = apsw.Error | DatabaseError

_QUICK_SECONDS_MAX: Final = 0.002
_AVERAGE_WEIGHT: Final = 0.2
_ALONE_WRITES_MAX: Final = 16
_ALONE_WRITES_PER_SECOND: Final = 1_000
_LONG_WAIT_SECONDS: Final = 0.5


def catch_failure(work: Callable[[], object]) -> Failure | None:
    """Run `work` and return the database error that it raised, if any."""
    try:
        work()
    except (apsw.Error, DatabaseError) as error:
        return error
    return None


class CommitTimer:
    """Measures commits and tells whether the disk is quick enough to commit on the loop.

    Handing a commit to a thread and back costs more than a quick disk takes. A moving average
    decides: a slow disk is noticed after a few commits, and a single slow one changes nothing.
    """

    def __init__(self, observe: Callable[[float], None] | None = None) -> None:
        self._average = 0.0
        self._started = 0.0
        self._observe = observe

    @property
    def is_quick(self) -> bool:
        return self._average <= _QUICK_SECONDS_MAX

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *exc_info: object) -> None:
        seconds = time.perf_counter() - self._started
        self._average += (seconds - self._average) * _AVERAGE_WEIGHT
        if self._observe is not None:
            self._observe(seconds)


class WritePace:
    """Tells whether a write is likely to be alone, so that waiting for others would be in vain.

    To wait is to let all that is ready run first, which costs a lone writer two rounds of the event
    loop. A Session writes a few times in a row and then waits for its model; many Sessions together
    write much more often, and save more by sharing a commit. So writes are counted, and the count
    falls with time. Of the writes of one round only the first does not wait: a task that writes
    again and again lets others run, and tasks that were started together share a commit.
    """

    def __init__(self) -> None:
        self._count = 0.0
        self._counted_at = 0.0
        self._in_round = False

    def is_alone(self, now: float) -> bool:
        """Count a write at `now`, in seconds; whether it should not wait for others."""
        fallen = (now - self._counted_at) * _ALONE_WRITES_PER_SECOND
        # Bounded, so that a lone writer is known as such soon after the others have ended.
        self._count = min(max(0.0, self._count - fallen) + 1, 2 * _ALONE_WRITES_MAX)
        self._counted_at = now
        if self._in_round or self._count > _ALONE_WRITES_MAX:
            return False
        self._in_round = True
        asyncio.get_running_loop().call_soon(self._end_round)
        return True

    def _end_round(self) -> None:
        self._in_round = False


class LockWait:
    """A bounded wait for the write lock of the database."""

    def __init__(self, seconds_max: float) -> None:
        self._began = time.monotonic()
        self._over = self._began + seconds_max

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._over

    @property
    def is_long(self) -> bool:
        """Whether other processes have taken the lock again and again meanwhile."""
        return time.monotonic() - self._began > _LONG_WAIT_SECONDS

    @property
    def remaining_millis(self) -> int:
        return max(1, round((self._over - time.monotonic()) * 1000))


class Committer:
    """A thread that runs work which waits for the disk."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[
            tuple[
                asyncio.AbstractEventLoop,
                Callable[[], None],
                Callable[[Failure | None], None],
            ]
            | None
        ] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="perdure-commit", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], None], then: Callable[[Failure | None], None]) -> None:
        self._queue.put((asyncio.get_running_loop(), work, then))

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            loop, work, then = item
            loop.call_soon_threadsafe(then, catch_failure(work))
