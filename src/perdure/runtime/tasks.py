"""Work that a cancellation cannot interrupt, and tasks that run in the background."""

import asyncio
import logging
from collections.abc import Coroutine
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
