"""A clock that moves only when a test moves it."""

import asyncio
import heapq
from typing import Final

EPOCH_MILLIS: Final = 1_700_000_000_000


class ManualClock:
    """Implements ports.Clock. Sleepers wake, in order of their time, when `advance` passes it."""

    def __init__(self, now_millis: int = EPOCH_MILLIS) -> None:
        self._now_millis = now_millis
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._slept = 0
        self._changed = asyncio.Event()
        self.sleeps: list[float] = []
        """The duration of every sleep, in order."""

    def now_millis(self) -> int:
        return self._now_millis

    def set_millis(self, now_millis: int) -> None:
        """Move the clock to a time, also backwards, and wake the sleepers that are due."""
        self._now_millis = now_millis
        while self._sleepers and self._sleepers[0][0] <= now_millis:
            _, _, sleeper = heapq.heappop(self._sleepers)
            if not sleeper.done():
                sleeper.set_result(None)

    def advance(self, seconds: float) -> None:
        self.set_millis(self._now_millis + round(seconds * 1000))

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self._changed.set()
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._slept += 1
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        due = self._now_millis + seconds * 1000
        heapq.heappush(self._sleepers, (due, self._slept, sleeper))
        await sleeper

    async def until_sleeps(self, count: int) -> None:
        """Wait until `count` sleeps have been asked for since the clock was made."""
        while len(self.sleeps) < count:
            self._changed.clear()
            await self._changed.wait()
