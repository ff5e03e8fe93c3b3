"""Runs at most one drain for each Session in this process.

`wake` starts a drain, `interrupt` ends it. Other work on a Session, such as a compaction, takes the
place of a drain (`run_exclusively`).

An entry exists exactly while a Session is active here. Wakes during a drain are merged into one
follow-up under the same entry, so callers that wait until the Session is idle wait for it too. A
wake that arrives before a drain fails still gets a drain of its own. Cancelling a waiter does not
cancel the drain. A defect ends one drain and not the process, so this file may catch everything.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from perdure.core import limits
from perdure.host import log_context
from perdure.schema.ids import SessionID
from perdure.schema.value import State

logger = logging.getLogger(__name__)

T = TypeVar("T")

Drain = Callable[[SessionID], Awaitable[None]]
"""Runs one Session until nothing is left to do."""
StatusListener = Callable[[SessionID, str, str | None], None]


class DrainInterruptedError(Exception):
    """Exclusive work was interrupted, or refused because the process is closing."""


class _Entry(State):
    done: asyncio.Future[None]
    exclusive: bool = False
    task: asyncio.Task[None] | None = None
    begun: bool = False
    pending_wake: bool = False
    stopping: bool = False


class RunCoordinator:
    def __init__(self, drain: Drain, *, status: StatusListener | None = None) -> None:
        self._drain = drain
        self._status = status
        self._entries: dict[SessionID, _Entry] = {}
        self._leaving = False
        self._closing = False
        self._on_closing: set[Callable[[], None]] = set()

    @property
    def active(self) -> tuple[SessionID, ...]:
        return tuple(self._entries)

    @property
    def closing(self) -> bool:
        """Whether this process is shutting down: runs are suspended, for another to continue."""
        return self._closing

    async def run_exclusively(
        self, session_id: SessionID, work: Callable[[SessionID], Awaitable[T]]
    ) -> T:
        """Run `work` once the Session is idle, in place of a drain; return what it returns.

        It can be interrupted as a drain can. Wakes that arrive meanwhile start a drain afterwards.
        """
        await self.wait_until_idle(session_id)
        if self._closing:
            raise DrainInterruptedError
        returned: list[T] = []

        async def in_place_of_a_drain(key: SessionID) -> None:
            returned.append(await work(key))

        entry = self._start(session_id, in_place_of_a_drain, exclusive=True)
        await asyncio.shield(entry.done)
        return returned[0]

    def wake(self, session_id: SessionID) -> None:
        """Start a drain, or make the running one look for work again. Never waits."""
        entry = self._entries.get(session_id)
        if entry is not None:
            entry.pending_wake = True
        elif not (self._closing or self._leaving):
            self._start(session_id, self._drain)

    async def interrupt(self, session_id: SessionID) -> None:
        """End the drain in progress and wait until it has cleaned up; no-op when idle."""
        self.stop(session_id)
        entry = self._entries.get(session_id)
        if entry is not None:
            await _wait_until_done(entry)

    def stop(self, session_id: SessionID) -> None:
        """End the drain in progress, without waiting for it."""
        entry = self._entries.get(session_id)
        if entry is None or entry.stopping:
            return
        entry.stopping = True
        entry.pending_wake = False
        # A drain that has not begun checks `stopping` itself when it begins.
        if entry.begun:
            assert entry.task is not None
            entry.task.cancel()

    async def wait_until_idle(self, session_id: SessionID) -> None:
        """Wait until the Session is not active here, whether its work succeeds or fails."""
        while (entry := self._entries.get(session_id)) is not None:
            await _wait_until_done(entry)

    async def wait_briefly(self, session_id: SessionID, seconds_max: float) -> None:
        """Wait until what runs here now has ended, at most so long."""
        entry = self._entries.get(session_id)
        if entry is not None:
            await asyncio.wait([entry.done], timeout=seconds_max)

    async def finish(self, seconds_max: float) -> None:
        """Start nothing more, and wait for what runs, at most so long."""
        self._leaving = True
        if runs := [entry.done for entry in self._entries.values()]:
            await asyncio.wait(runs, timeout=seconds_max)

    def begin_closing(self) -> None:
        """Begin no turn from now on: each run ends after the one in progress, and is suspended."""
        if self._closing:
            return
        self._closing = True
        for call in tuple(self._on_closing):
            call()

    @contextmanager
    def on_closing(self, call: Callable[[], None]) -> Generator[None]:
        """Call it when this process begins to end, or at once if it has."""
        self._on_closing.add(call)
        try:
            if self._closing:
                call()
            yield
        finally:
            self._on_closing.discard(call)

    async def close(
        self,
        *,
        grace_seconds: float = 0.0,
        parked: Callable[[], Container[SessionID]] = frozenset[SessionID],
    ) -> None:
        """Start nothing more, give what runs some time to come to an end, then cancel it.

        Those that are `parked` wait for a person, so they are not waited for. It is asked again
        and again, because a run can come to such a question while the others end, and once more
        before the rest is cancelled: it also leaves their questions to the next process.
        """
        self.begin_closing()
        if grace_seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._wait_for_others(parked)
        parked()
        await asyncio.gather(*(self.interrupt(key) for key in self.active))

    async def _wait_for_others(self, parked: Callable[[], Container[SessionID]]) -> None:
        ends = {session_id: entry.done for session_id, entry in self._entries.items()}
        while True:
            waiting = parked()
            left = [end for key, end in ends.items() if key not in waiting and not end.done()]
            if not left:
                return
            await asyncio.wait(left, timeout=limits.PARKED_LOOK_SECONDS)

    def _start(self, session_id: SessionID, drain: Drain, *, exclusive: bool = False) -> _Entry:
        entry = _Entry(asyncio.get_running_loop().create_future(), exclusive)
        # Marks a failure as seen: it may have no waiter, or only waiters that were cancelled.
        entry.done.add_done_callback(lambda done: done.exception())
        self._entries[session_id] = entry
        self._report_status(session_id, "running", None)
        self._launch(session_id, entry, drain)
        return entry

    def _launch(self, session_id: SessionID, entry: _Entry, drain: Drain) -> None:
        entry.begun = False
        work = _guarded(entry, partial(drain, session_id), session_id)
        entry.task = asyncio.create_task(work, name=f"drain {session_id}")
        # A callback, not code after the await: a task cancelled before its first step runs none.
        entry.task.add_done_callback(lambda task: self._finished(session_id, entry, task))

    def _finished(self, session_id: SessionID, entry: _Entry, task: asyncio.Task[None]) -> None:
        failure = DrainInterruptedError() if task.cancelled() else task.exception()
        again = entry.pending_wake and not (self._closing or self._leaving)
        if again and failure is None and not (entry.stopping or entry.exclusive):
            entry.pending_wake = False
            self._launch(session_id, entry, self._drain)
            return
        del self._entries[session_id]
        self._report_status(session_id, *_outcome(failure))
        if again:
            self._start(session_id, self._drain)
        if failure is None:
            entry.done.set_result(None)
        else:
            entry.done.set_exception(failure)

    def _report_status(self, session_id: SessionID, status: str, message: str | None) -> None:
        if self._status is not None:
            self._status(session_id, status, message)


async def _guarded(
    entry: _Entry, drain: Callable[[], Awaitable[None]], session_id: SessionID
) -> None:
    entry.begun = True
    log_context.SESSION.set(session_id)
    if entry.stopping:
        # Cancelled after its first step: a task that is cancelled before it does nothing at all,
        # not even what an interrupt must not skip, such as settling calls of a dead process.
        assert entry.task is not None
        asyncio.get_running_loop().call_soon(entry.task.cancel)
    try:
        await drain()
    except Exception:
        logger.exception("drain of %s failed", session_id)
        raise


async def _wait_until_done(entry: _Entry) -> None:
    await asyncio.wait([entry.done])


def _outcome(failure: BaseException | None) -> tuple[str, str | None]:
    if failure is None or isinstance(failure, DrainInterruptedError):
        return "idle", None
    return "failed", str(failure)
