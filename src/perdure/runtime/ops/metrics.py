"""Metrics of a running instance: durations, failure counts, and the size of the baseline.

They are kept in memory since the start, served by `GET /api/health/detail` and `GET /metrics`, and
passed on to a Telemetry if there is one. No decision depends on them, and recording one never
fails.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Literal, Protocol

from perdure.core.histogram import Histogram
from perdure.schema.health import Durations
from perdure.schema.models.model import NO_TOKENS, TokenUsage

DurationName = Literal["boundary", "commit", "loop_lag", "request", "tool", "turn"]
CounterName = Literal["boundary.unavailable", "loop.stalled", "turn.failed"]

DURATIONS: Final[tuple[DurationName, ...]] = (
    "boundary",
    "commit",
    "loop_lag",
    "request",
    "tool",
    "turn",
)
COUNTERS: Final[tuple[CounterName, ...]] = ("boundary.unavailable", "loop.stalled", "turn.failed")
_LAG_INTERVAL_SECONDS: Final = 1.0
_NO_ATTRIBUTES: Final[Mapping[str, str]] = {}


class Telemetry(Protocol):
    """Exporter for metrics and spans."""

    def span(
        self, name: DurationName, attributes: Mapping[str, str]
    ) -> AbstractContextManager[object]: ...

    def record(self, name: DurationName, seconds: float, attributes: Mapping[str, str]) -> None: ...
    def use(self, model: str, tokens: TokenUsage, cost: float) -> None: ...
    def count(self, name: CounterName, amount: int) -> None: ...
    def size(self, baseline_chars: int) -> None: ...


class Metrics:
    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._telemetry = telemetry
        self._histograms: dict[DurationName, Histogram] = {name: Histogram() for name in DURATIONS}
        self._counts: dict[CounterName, int] = dict.fromkeys(COUNTERS, 0)
        self._answers: dict[int, int] = {}
        self.baseline_chars = 0
        """Length of the newest Baseline System Context that was sent to a model."""
        self.tokens = NO_TOKENS
        self.cost = 0.0
        """What the turns since the start have used, in tokens and in dollars."""

    def timed(self, name: DurationName, **attributes: str) -> AbstractContextManager[None]:
        """Record how long the block takes, also if it raises."""
        span = None if self._telemetry is None else self._telemetry.span(name, attributes)
        return _Timed(self, name, attributes, span)

    def observe(
        self, name: DurationName, seconds: float, attributes: Mapping[str, str] = _NO_ATTRIBUTES
    ) -> None:
        self._histograms[name].observe(seconds)
        if self._telemetry is not None:
            self._telemetry.record(name, seconds, attributes)

    def observe_usage(self, model: str, tokens: TokenUsage, cost: float) -> None:
        """Add what a turn has used of the model `provider/model`."""
        self.tokens = self.tokens.plus(tokens)
        self.cost += cost
        if self._telemetry is not None:
            self._telemetry.use(model, tokens, cost)

    def count(self, name: CounterName, amount: int = 1) -> None:
        if amount:
            self._counts[name] += amount
            if self._telemetry is not None:
                self._telemetry.count(name, amount)

    def count_answer(self, status: int) -> None:
        """Count an answer to an HTTP request by its status."""
        self._answers[status] = self._answers.get(status, 0) + 1

    def observe_baseline(self, baseline: str) -> None:
        self.baseline_chars = len(baseline)
        if self._telemetry is not None:
            self._telemetry.size(len(baseline))

    def answers(self) -> Mapping[int, int]:
        """How many HTTP requests were answered, by status."""
        return self._answers

    def histograms(self) -> Mapping[str, Histogram]:
        return {str(name): found for name, found in self._histograms.items()}

    def durations(self) -> Mapping[str, Durations]:
        return {str(name): found.durations() for name, found in self._histograms.items()}

    def counts(self) -> Mapping[str, int]:
        return {str(name): count for name, count in self._counts.items()}

    async def watch_loop(self) -> None:
        """Record once a second how late the event loop is, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_INTERVAL_SECONDS
            await asyncio.sleep(_LAG_INTERVAL_SECONDS)
            self.observe("loop_lag", max(0.0, loop.time() - due))


class _Timed:
    """A block that is measured, within a span of the Telemetry if there is one."""

    def __init__(
        self,
        metrics: Metrics,
        name: DurationName,
        attributes: Mapping[str, str],
        span: AbstractContextManager[object] | None,
    ) -> None:
        self._metrics = metrics
        self._name: DurationName = name
        self._attributes = attributes
        self._span = span
        self._began = 0.0

    def __enter__(self) -> None:
        if self._span is not None:
            self._span.__enter__()
        self._began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._metrics.observe(self._name, time.perf_counter() - self._began, self._attributes)
        if self._span is not None:
            self._span.__exit__(kind, error, trace)
