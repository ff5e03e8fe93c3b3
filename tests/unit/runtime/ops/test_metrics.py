"""What an instance measures of itself."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pytest

from perdure.runtime.ops.metrics import Metrics
from perdure.schema.models.model import TokenCache, TokenUsage


@dataclass
class Heard:
    """A Telemetry that keeps what it hears."""

    spans: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )
    recorded: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )
    used: list[tuple[str, TokenUsage, float]] = field(
        default_factory=list[tuple[str, TokenUsage, float]]
    )
    counted: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    sizes: list[int] = field(default_factory=list[int])

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        self.spans.append((name, attributes))
        return nullcontext()

    def record(self, name: str, seconds: float, attributes: Mapping[str, str]) -> None:
        self.recorded.append((name, attributes))

    def use(self, model: str, tokens: TokenUsage, cost: float) -> None:
        self.used.append((model, tokens, cost))

    def count(self, name: str, amount: int) -> None:
        self.counted.append((name, amount))

    def size(self, baseline_chars: int) -> None:
        self.sizes.append(baseline_chars)


def test_a_block_is_timed_whatever_becomes_of_it() -> None:
    heard = Heard()
    measures = Metrics(heard)
    with measures.timed("turn", session="ses_1"):
        pass
    with pytest.raises(ValueError, match="x"), measures.timed("turn"):
        raise ValueError("x")
    assert measures.durations()["turn"].count == 2
    assert heard.spans == [("turn", {"session": "ses_1"}), ("turn", {})]
    assert heard.recorded == heard.spans


def test_tokens_and_cost_are_added_up_and_handed_on() -> None:
    heard = Heard()
    measures = Metrics(heard)
    spent = TokenUsage(input=3, output=2, reasoning=1, cache=TokenCache(read=5, write=4))
    measures.observe_usage("fake/m", spent, 0.25)
    measures.observe_usage("fake/m", spent, 0.5)
    assert (measures.tokens, measures.cost) == (spent.plus(spent), 0.75)
    assert heard.used == [("fake/m", spent, 0.25), ("fake/m", spent, 0.5)]


def test_counts_and_sizes_are_kept_and_handed_on() -> None:
    heard = Heard()
    measures = Metrics(heard)
    measures.count("boundary.unavailable", 0)
    measures.count("boundary.unavailable", 2)
    measures.observe_baseline("abc")
    assert measures.counts() == {"boundary.unavailable": 2, "loop.stalled": 0, "turn.failed": 0}
    assert measures.baseline_chars == 3
    assert (heard.counted, heard.sizes) == ([("boundary.unavailable", 2)], [3])


def test_nobody_has_to_listen() -> None:
    measures = Metrics()
    with measures.timed("boundary"):
        measures.count("turn.failed")
    assert measures.durations()["boundary"].count == 1
