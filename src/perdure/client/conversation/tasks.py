"""Tasks that end with a scope, and their errors."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import cast


@asynccontextmanager
async def running(work: Coroutine[object, object, None]) -> AsyncGenerator["asyncio.Task[None]"]:
    """The work as a task, which ends with the scope."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def only_error(error: BaseException) -> BaseException:
    """The first error in a group, at any depth."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    return only_error(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
