"""One drain for each Session at a time: `run` joins it, `wake` coalesces, `interrupt` ends it.

Other work on a Session, such as a compaction, takes the place of a drain (`exclusive`).

An entry exists exactly while a Session is active here. Wakes during a drain become a single
follow-up under the same entry, so whoever joined keeps waiting. A failure goes to those who
joined; a wake that arrived meanwhile still gets its own drain. Cancelling a waiter cancels nothing.
This file is boundary 1 of those that may catch everything: a defect ends a drain, not the process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from perdure.host import log_context
from perdure.schema.ids import SessionID
from perdure.schema.value import State

logger = logging.getLogger(__name__)

T = TypeVar("T")

Drain = Callable[[SessionID, bool], Awaitable[None]]
"""Run one Session until nothing immediate remains; forced: even with an empty inbox."""
StatusListener = Callable[[SessionID, str, str | None], None]


class DrainInterruptedError(Exception):
    """The drain that was joined has been interrupted."""


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
        self._closing = False

    @property
    def active(self) -> tuple[SessionID, ...]:
        return tuple(self._entries)

    @property
    def closing(self) -> bool:
        """Whether everything is being interrupted, because this process ends."""
        return self._closing

    async def run(self, session_id: SessionID) -> None:
        """Join the drain in progress, or start a forced one; raises what it raises."""
        while True:
            entry = self._entries.get(session_id)
            if entry is None:
                if self._closing:
                    raise DrainInterruptedError
                entry = self._start(session_id, self._drain, force=True)
            elif entry.stopping or entry.exclusive:
                await _settled(entry)
                continue
            await asyncio.shield(entry.done)
            return

    async def exclusive(
        self, session_id: SessionID, work: Callable[[SessionID], Awaitable[T]]
    ) -> T:
        """Do `work` when nothing else runs, and nothing else until it is done; what it returns.

        It can be interrupted as a drain can. Wakes that arrive meanwhile are honoured afterwards.
        """
        await self.idle(session_id)
        if self._closing:
            raise DrainInterruptedError
        returned: list[T] = []

        async def in_place_of_a_drain(key: SessionID, _: bool) -> None:
            returned.append(await work(key))

        entry = self._start(session_id, in_place_of_a_drain, exclusive=True)
        await asyncio.shield(entry.done)
        return returned[0]

    def wake(self, session_id: SessionID) -> None:
        """There may be work. Never waits."""
        entry = self._entries.get(session_id)
        if entry is not None:
            entry.pending_wake = True
        elif not self._closing:
            self._start(session_id, self._drain)

    async def interrupt(self, session_id: SessionID) -> None:
        """End the drain in progress and wait until it has cleaned up; nothing when idle."""
        self.stop(session_id)
        entry = self._entries.get(session_id)
        if entry is not None:
            await _settled(entry)

    def stop(self, session_id: SessionID) -> None:
        """End the drain in progress, without waiting for it."""
        entry = self._entries.get(session_id)
        if entry is None or entry.stopping:
            return
        entry.stopping = True
        entry.pending_wake = False
        # One that has not begun sees by itself that it must stop.
        if entry.begun:
            assert entry.task is not None
            entry.task.cancel()

    async def idle(self, session_id: SessionID) -> None:
        """Wait until the Session is not active here; failures do not matter."""
        while (entry := self._entries.get(session_id)) is not None:
            await _settled(entry)

    async def close(self) -> None:
        """Interrupt everything and start nothing more."""
        self._closing = True
        await asyncio.gather(*(self.interrupt(key) for key in self.active))

    def _start(
        self, session_id: SessionID, drain: Drain, *, force: bool = False, exclusive: bool = False
    ) -> _Entry:
        entry = _Entry(asyncio.get_running_loop().create_future(), exclusive)
        # Those who joined may all have been cancelled: a failure nobody awaits is no leak.
        entry.done.add_done_callback(lambda done: done.exception())
        self._entries[session_id] = entry
        self._tell(session_id, "running", None)
        self._launch(session_id, entry, drain, force=force)
        return entry

    def _launch(self, session_id: SessionID, entry: _Entry, drain: Drain, *, force: bool) -> None:
        entry.begun = False
        work = _guarded(entry, partial(drain, session_id, force), session_id)
        entry.task = asyncio.create_task(work, name=f"drain {session_id}")
        # A callback, not code after the await: a task cancelled before its first step runs none.
        entry.task.add_done_callback(lambda task: self._finished(session_id, entry, task))

    def _finished(self, session_id: SessionID, entry: _Entry, task: asyncio.Task[None]) -> None:
        failure = DrainInterruptedError() if task.cancelled() else task.exception()
        again = entry.pending_wake and not self._closing
        if again and failure is None and not (entry.stopping or entry.exclusive):
            entry.pending_wake = False
            self._launch(session_id, entry, self._drain, force=False)
            return
        del self._entries[session_id]
        self._tell(session_id, *_outcome(failure))
        if again:
            self._start(session_id, self._drain)
        if failure is None:
            entry.done.set_result(None)
        else:
            entry.done.set_exception(failure)

    def _tell(self, session_id: SessionID, status: str, message: str | None) -> None:
        if self._status is not None:
            self._status(session_id, status, message)


async def _guarded(
    entry: _Entry, drain: Callable[[], Awaitable[None]], session_id: SessionID
) -> None:
    entry.begun = True
    log_context.SESSION.set(session_id)
    if entry.stopping:
        # Not before its first step: a task that is cancelled then does nothing at all, not even
        # what an interrupt must not cut, such as settling what a dead process left open.
        assert entry.task is not None
        asyncio.get_running_loop().call_soon(entry.task.cancel)
    try:
        await drain()
    except Exception:
        logger.exception("drain of %s failed", session_id)
        raise


async def _settled(entry: _Entry) -> None:
    await asyncio.wait([entry.done])


def _outcome(failure: BaseException | None) -> tuple[str, str | None]:
    if failure is None or isinstance(failure, DrainInterruptedError):
        return "idle", None
    return "failed", str(failure)
