"""Polling for what another process does, because there is no event for it in this one."""

import asyncio
from collections.abc import Callable
from itertools import repeat
from typing import Final, TypeVar

from tests.support.api import PATIENCE_SECONDS

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.01


async def until(look: Callable[[], T]) -> T:
    """The first truthy value that `look` returns; TimeoutError when that takes too long."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for seconds in repeat(_LOOK_SECONDS):
            if seen := look():
                return seen
            await asyncio.sleep(seconds)
    raise AssertionError("never reached: the wait is bounded")
