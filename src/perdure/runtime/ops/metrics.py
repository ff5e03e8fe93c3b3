"""What a running instance measures of itself: how long things take, how often they fail.

Kept in memory since the start, for whoever operates it (`GET /api/health/detail`), and handed on to
a Telemetry where there is one. Nothing decides by these figures, and taking one never fails.
"""

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Literal, Protocol

from perdure.core.histogram import Histogram
from perdure.schema.health import Durations

Measured = Literal["boundary", "commit", "loop_lag", "tool", "turn"]
Counted = Literal["boundary.unavailable", "turn.failed"]

MEASURED: Final[tuple[Measured, ...]] = ("boundary", "commit", "loop_lag", "tool", "turn")
COUNTED: Final[tuple[Counted, ...]] = ("boundary.unavailable", "turn.failed")
_LAG_SECONDS: Final = 1.0


class Telemetry(Protocol):
    """Where figures and spans go beyond this process."""

    def span(
        self, name: Measured, attributes: Mapping[str, str]
    ) -> AbstractContextManager[object]: ...

    def record(self, name: Measured, seconds: float) -> None: ...
    def count(self, name: Counted, amount: int) -> None: ...
    def size(self, baseline_chars: int) -> None: ...


class Metrics:
    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._telemetry = telemetry
        self._histograms: dict[Measured, Histogram] = {name: Histogram() for name in MEASURED}
        self._counts: dict[Counted, int] = dict.fromkeys(COUNTED, 0)
        self.baseline_chars = 0
        """Of the newest baseline that was told to a model."""

    @contextmanager
    def timed(self, name: Measured, **attributes: str) -> Generator[None]:
        """How long the block takes, whatever becomes of it."""
        span = self._telemetry.span(name, attributes) if self._telemetry else nullcontext()
        began = time.perf_counter()
        with span:
            try:
                yield
            finally:
                self.observe(name, time.perf_counter() - began)

    def observe(self, name: Measured, seconds: float) -> None:
        self._histograms[name].observe(seconds)
        if self._telemetry is not None:
            self._telemetry.record(name, seconds)

    def count(self, name: Counted, amount: int = 1) -> None:
        if amount:
            self._counts[name] += amount
            if self._telemetry is not None:
                self._telemetry.count(name, amount)

    def told(self, baseline: str) -> None:
        self.baseline_chars = len(baseline)
        if self._telemetry is not None:
            self._telemetry.size(len(baseline))

    def durations(self) -> Mapping[str, Durations]:
        return {str(name): found.durations() for name, found in self._histograms.items()}

    def counts(self) -> Mapping[str, int]:
        return {str(name): count for name, count in self._counts.items()}

    async def watch_loop(self) -> None:
        """How late the event loop is, looked at once a second until this is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_SECONDS
            await asyncio.sleep(_LAG_SECONDS)
            self.observe("loop_lag", max(0.0, loop.time() - due))
