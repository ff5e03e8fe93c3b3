"""Work that a cancellation cannot interrupt, and tasks that run in the background."""

import asyncio
import logging
from collections.abc import Coroutine, Generator
from typing import Any, Self, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end, even if this task is cancelled meanwhile, however often.

    A cancellation that arrived is raised afterwards: it is delayed, never swallowed. A failure of
    `work` takes precedence over it.
    """
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
        else:
            break
    result = task.result()
    if cancelled:
        raise asyncio.CancelledError
    return result


async def shielded_write(work: Coroutine[Any, Any, T]) -> T:
    """As `shielded`, for work that begins no timeout and no group of tasks.

    It begins in this task, to which these would belong. A write that need not wait for others ends
    there: nothing can interrupt it, and it needs no task of its own.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        return done.value
    return await shielded(_go_on(work, waits_for))


async def _go_on(work: Coroutine[Any, Any, T], waits_for: Any) -> T:
    return await _Begun(work, waits_for)


class _Begun(Generator[Any, Any, T]):
    """Work that has begun and waits, to be awaited to its end."""

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._work = work
        self._waiting = [waits_for]

    def __await__(self) -> Self:
        return self

    def send(self, value: Any) -> Any:
        return self._waiting.pop() if self._waiting else self._work.send(value)

    def throw(self, *error: Any) -> Any:
        return self._work.throw(*error)


class Background:
    """Background tasks, which are cancelled when their scope ends.

    Not a TaskGroup: a failed task is logged and must not end the runtime, and an error of the
    scope's body is raised as it is.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        self.launch(work, name=name)

    def launch(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """As `start`, for a caller that may cancel the task earlier."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background task %s failed", task.get_name(), exc_info=error)
