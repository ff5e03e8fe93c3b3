"""The only clever asyncio here: what an interrupt cannot cut, and what runs beside everything."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end, even if this task is cancelled meanwhile, however often.

    A cancellation that arrived is raised again afterwards: it is delayed, never swallowed. Only a
    failure of `work` itself comes before it.
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
    """Tasks that run beside everything else and end with their scope.

    Not a TaskGroup: a failed background task is reported and must not take the runtime with it,
    and an error of the scope's body comes out as it was raised.
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
        """As `start`; the task, for whoever may want to cancel it earlier."""
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
