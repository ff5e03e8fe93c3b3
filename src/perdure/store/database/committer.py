"""Waiting for the disk: how long it takes, the thread that may wait for it, and what it answers.

A COMMIT waits for a quick disk on the event loop and for a slow one in the Committer's thread;
which of them it is, `CommitTimer` says. What is committed is decided elsewhere.
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
_PACE_WEIGHT: Final = 0.2


def failure_of(work: Callable[[], object]) -> Failure | None:
    """Do `work`; what the database said against it, for whoever waits for the outcome."""
    try:
        work()
    except (apsw.Error, DatabaseError) as error:
        return error
    return None


class CommitTimer:
    """Whether the disk is quick enough to wait for it on the loop.

    Handing a commit to a thread and back costs more than a quick disk takes. Decided by a moving
    average, wherever the commits ran: a slow disk is noticed after a few, one hiccup is forgiven.
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
        took = time.perf_counter() - self._started
        self._average += (took - self._average) * _PACE_WEIGHT
        if self._observe is not None:
            self._observe(took)


class Committer:
    """The thread that waits for the disk."""

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
            loop.call_soon_threadsafe(then, failure_of(work))
