"""The wall clock of a simulated machine: it follows the loop's time, and jumps when told to."""

import asyncio

from perdure.testing.manual_clock import EPOCH_MILLIS
from tests.harness.simulation.virtual_loop import VirtualLoop


class VirtualClock:
    """Implements ports.Clock. Waiting goes by the loop alone, as on a real machine."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._ahead_millis = 0

    def now_millis(self) -> int:
        return EPOCH_MILLIS + round(self._loop.time() * 1_000) + self._ahead_millis

    def jump(self, seconds: float) -> None:
        """Set the clock; sleeping tasks are not affected."""
        self._ahead_millis += round(seconds * 1_000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
