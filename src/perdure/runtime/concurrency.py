"""The only clever asyncio here: a region that an interrupt cannot cut."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

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
