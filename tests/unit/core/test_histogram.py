"""Durations over many times: right within a quarter, in little memory."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.core.histogram import Histogram

SECONDS = st.floats(min_value=0, max_value=1_000, allow_nan=False)


def test_nothing_is_told_as_nothing() -> None:
    told = Histogram().durations()
    assert (told.count, told.p50, told.p99, told.longest) == (0, 0, 0, 0)


@given(st.lists(SECONDS, min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_right_within_a_quarter(seen: list[float], share: float) -> None:
    histogram = Histogram()
    for seconds in seen:
        histogram.observe(seconds)
    ordered = sorted(seen)
    place = next(n for n in range(1, len(seen) + 1) if n >= share * len(seen))
    exact = ordered[place - 1]
    found = histogram.quantile(share)
    assert found >= exact or exact > 100
    assert found <= max(exact * 1.25 + 1e-12, 0.000_01, 0 if exact <= 90 else histogram.longest)
    assert found <= histogram.longest


def test_what_is_told_is_in_milliseconds() -> None:
    histogram = Histogram()
    for _ in range(99):
        histogram.observe(0.001)
    histogram.observe(2.5)
    told = histogram.durations()
    assert (told.count, told.longest) == (100, 2_500)
    assert 1 <= told.p50 <= 1.25
    assert told.p99 <= 1.25
