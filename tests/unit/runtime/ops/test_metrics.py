"""What an instance measures of itself."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import pytest

from perdure.runtime.ops.metrics import Metrics


@dataclass
class Heard:
    """A Telemetry that keeps what it hears."""

    spans: list[tuple[str, Mapping[str, str]]] = field(
        default_factory=list[tuple[str, Mapping[str, str]]]
    )
    recorded: list[str] = field(default_factory=list[str])
    counted: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    sizes: list[int] = field(default_factory=list[int])

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        self.spans.append((name, attributes))
        return nullcontext()

    def record(self, name: str, seconds: float) -> None:
        self.recorded.append(name)

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
    assert heard.recorded == ["turn", "turn"]


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
