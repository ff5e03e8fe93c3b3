"""The jobs of a database: accepted, run without suspension, settled once.

A job is a coroutine over an async Transaction that never suspends here, so `drive` can run it to
completion. Its future resolves after the commit; what it raised is passed to its caller.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

import apsw

from perdure.ports import Transaction
from perdure.schema.value import State
from perdure.store.database import sqlite_connection

T = TypeVar("T")
Job = Callable[[Transaction], Awaitable[Any]]


class SettledFuture(asyncio.Future[T]):
    """The outcome of an accepted job. Cancelling the task that awaits it takes effect then."""

    def cancel(self, msg: Any | None = None) -> bool:
        return False


class QueuedJob(State):
    job: Job
    future: asyncio.Future[Any]
    committed: Callable[[Any], None] | None
    result: Any = None
    error: BaseException | None = None


class Outcome:
    """Catches whatever a job raises, to pass it to the caller that awaits the job."""

    error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


def notify_listener(queued: QueuedJob) -> None:
    if queued.committed is None:
        return
    with Outcome() as outcome:
        queued.committed(queued.result)
    if outcome.error is not None:
        # A listener's defect is reported. It does not undo or delay any commit.
        context = {"message": "a commit listener failed", "exception": outcome.error}
        asyncio.get_running_loop().call_exception_handler(context)


def drive(job: Awaitable[T]) -> T:
    """Run a coroutine that never suspends to completion."""
    step = job.__await__()
    try:
        next(step)
    except StopIteration as done:
        return done.value
    raise AssertionError("a database job may await nothing but its own transaction")


def fail(future: asyncio.Future[Any], error: BaseException, path: str) -> None:
    if future.done():
        return
    if isinstance(error, apsw.Error):
        translated = sqlite_connection.translate_error(error, path)
        translated.__cause__ = error
        future.set_exception(translated)
    else:
        future.set_exception(error)
    # Mark it as retrieved: a caller that was cancelled meanwhile never reads it.
    future.exception()
