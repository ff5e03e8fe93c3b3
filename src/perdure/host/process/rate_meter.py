"""RateMeter: counts the bytes that a program sends within a second."""

import asyncio


class RateMeter:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._second = 0.0
        self._bytes = 0

    def exceeds_with(self, count: int) -> bool:
        """Add bytes; returns whether the limit for a second is exceeded."""
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._second, self._bytes = now, 0
        self._bytes += count
        return self._bytes > self._bytes_max
