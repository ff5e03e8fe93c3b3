"""Waiting for what another process does: there is no event for it here, so it is looked for."""

import asyncio
from collections.abc import Callable
from itertools import repeat
from typing import Final, TypeVar

from tests.support.api import PATIENCE_SECONDS

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.01


async def until(look: Callable[[], T]) -> T:
    """The first thing seen that is not nothing; fails when that takes too long."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for seconds in repeat(_LOOK_SECONDS):
            if seen := look():
                return seen
            await asyncio.sleep(seconds)
    raise AssertionError("never reached: the wait is bounded")
