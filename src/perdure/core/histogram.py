"""Histogram of durations, in constant memory.

Each bucket is a quarter larger than the one before, so that a quantile is off by at most a quarter
at any size. Durations since the start of the process are counted; none expire.
"""

import bisect
from collections.abc import Iterator
from typing import Final

from msgspec import field

from perdure.schema.health import Durations
from perdure.schema.value import State

_SMALLEST_SECONDS: Final = 0.000_01
_GROWTH: Final = 1.25
_BUCKETS: Final = 73  # up to about 100 seconds; longer durations go into the last bucket

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
        """Seconds that this share of the durations does not exceed; 0 if none were observed."""
        wanted = share * self.count
        passed = 0
        for bound, count in zip((*_BOUNDS, self.longest), self.counts, strict=True):
            passed += count
            if count and passed >= wanted:
                return min(bound, self.longest)
        return self.longest

    def cumulative(self, every: int) -> Iterator[tuple[float, int]]:
        """Every n-th upper bound in seconds, and how many durations do not exceed it."""
        passed = 0
        for index, (bound, count) in enumerate(zip(_BOUNDS, self.counts, strict=False), start=1):
            passed += count
            if index % every == 0:
                yield bound, passed

    def durations(self) -> Durations:
        return Durations(
            count=self.count,
            p50=_millis(self.quantile(0.5)),
            p99=_millis(self.quantile(0.99)),
            longest=_millis(self.longest),
        )


def _millis(seconds: float) -> float:
    return round(seconds * 1_000, 3)
