"""Watches the event loop of a server: reports each time that it stalled, with the stack.

The selector of the loop notes when a round of callbacks begins, and starts a timer of the operating
system unless one is running. The timer is not stopped with the round: many short rounds share one.
When it ends, a round that has run too long is interrupted for a moment, to note where it is; for
one that began later the timer goes on, and while the loop waits it stays stopped. An idle loop
costs nothing, and there is no thread. It needs the main thread and SIGALRM, so only a program of
its own uses it, not an embedded host.
"""

import asyncio
import logging
import selectors
import signal
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from perdure.core.limits import LOOP_STALL_SECONDS_MAX, LOOP_STALL_STACK_CALLS_MAX

logger = logging.getLogger(__name__)

_Events = list[tuple[selectors.SelectorKey, int]]
_UNKNOWN: Final = "an unknown place"


class LoopWatchdog:
    def __init__(self, *, seconds_max: float = LOOP_STALL_SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._began: float | None = None
        """When the round of callbacks that is running began; None while none is watched."""
        self._timed = False
        """Whether the timer is running."""
        self._place = _UNKNOWN
        self._report: Callable[[], None] | None = None

    def make_loop(self) -> asyncio.AbstractEventLoop:
        """A loop that can be watched."""
        return asyncio.SelectorEventLoop(_WatchedSelector(self))

    @contextmanager
    def watching(self, report: Callable[[], None]) -> Generator[None]:
        """Log every stall inside this scope, and call `report`."""
        before = signal.signal(signal.SIGALRM, self._interrupt)
        self._report = report
        try:
            yield
        finally:
            self._report = self._began = None
            self._timed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def begin_round(self) -> None:
        if self._report is None:
            return
        self._began = time.monotonic()
        if not self._timed:
            self._start_timer(self._seconds_max)

    def end_round(self) -> None:
        began, self._began = self._began, None
        if began is None or self._report is None:
            return
        seconds = time.monotonic() - began
        if seconds > self._seconds_max:
            logger.warning("the event loop stalled for %.0f ms at %s", seconds * 1e3, self._place)
            self._place = _UNKNOWN
            self._report()

    def _start_timer(self, seconds: float) -> None:
        self._timed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        self._timed = False
        if frame is None or self._began is None:
            return
        remaining = self._began + self._seconds_max - time.monotonic()
        if remaining > 0:
            # The timer was started for an earlier round.
            self._start_timer(remaining)
            return
        calls = traceback.extract_stack(frame, LOOP_STALL_STACK_CALLS_MAX)
        self._place = " < ".join(_describe(call) for call in reversed(calls))


class _WatchedSelector(selectors.DefaultSelector):
    def __init__(self, watchdog: LoopWatchdog) -> None:
        super().__init__()
        self._watchdog = watchdog

    def select(self, timeout: float | None = None) -> _Events:
        self._watchdog.end_round()
        try:
            return super().select(timeout)
        finally:
            self._watchdog.begin_round()


def _describe(call: traceback.FrameSummary) -> str:
    file = "/".join(call.filename.rsplit("/", 2)[-2:])
    return f"{call.name} ({file}:{call.lineno})"
