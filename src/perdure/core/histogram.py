"""How long something takes, over many times, in little memory.

Durations fall into buckets that grow by a quarter each, so that a quantile is right within a
quarter whatever its size. The oldest are never forgotten: `since` the start is what it tells.
"""

import bisect
from typing import Final

from msgspec import field

from perdure.schema.health import Durations
from perdure.schema.value import State

_SMALLEST_SECONDS: Final = 0.000_01
_GROWTH: Final = 1.25
_BUCKETS: Final = 73  # up to about 100 seconds; what takes longer is in the last

_BOUNDS: Final = tuple(_SMALLEST_SECONDS * _GROWTH**power for power in range(_BUCKETS))


class Histogram(State):
    counts: list[int] = field(default_factory=lambda: [0] * (_BUCKETS + 1))
    count: int = 0
    total: float = 0.0
    longest: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(_BOUNDS, seconds)] += 1
        self.count += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)

    def quantile(self, share: float) -> float:
        """The time in seconds that this share did not exceed; 0 when there was nothing."""
        wanted = share * self.count
        passed = 0
        for bound, count in zip((*_BOUNDS, self.longest), self.counts, strict=True):
            passed += count
            if count and passed >= wanted:
                return min(bound, self.longest)
        return self.longest

    def durations(self) -> Durations:
        return Durations(
            count=self.count,
            p50=_millis(self.quantile(0.5)),
            p99=_millis(self.quantile(0.99)),
            longest=_millis(self.longest),
        )


def _millis(seconds: float) -> float:
    return round(seconds * 1_000, 3)
