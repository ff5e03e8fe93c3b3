"""Work on data of others: at once if it is small, in a thread if it is large.

The event loop goes on meanwhile, because the interpreter changes threads every few milliseconds.
That does not help against a single call that is slow by itself: such work needs a bound.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from perdure.core.limits import FILE_INLINE_BYTES_MAX

T = TypeVar("T")


async def offload(size: int, work: Callable[[], T]) -> T:
    """The result of `work`, which handles about `size` bytes or characters."""
    return work() if size <= FILE_INLINE_BYTES_MAX else await asyncio.to_thread(work)
