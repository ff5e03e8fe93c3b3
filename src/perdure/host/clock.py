"""The machine's clock."""

import asyncio
import time


class SystemClock:
    """Implements ports.Clock."""

    def now_millis(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
