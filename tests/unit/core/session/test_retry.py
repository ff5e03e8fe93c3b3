"""When a failed request is sent again: by its kind, never for ever, never sooner than asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.core import limits
from perdure.core.session import retry
from perdure.core.session.retry import Retry
from perdure.llm.error import RETRYABLE, LLMError, Reason


def delays(reason: Reason, *, chance: float = 0.5, told: int | None = None) -> list[float]:
    error = LLMError(reason, "no", retry_after_ms=told)
    waits: list[float] = []
    while (delay := retry.delay_seconds(error, failed=len(waits) + 1, chance=chance)) is not None:
        waits.append(delay)
    return waits


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("rate-limit", [1, 2, 4, 8, 16]),
        ("overload", [1, 2, 4, 8, 16]),
        ("provider-internal", [0.5, 1]),
        ("transport", [0.5, 1]),
        ("timeout", []),
        ("overflow", []),
        ("quota-exceeded", []),
        ("authentication", []),
        ("content-policy", []),
        ("invalid-request", []),
        ("invalid-provider-output", []),
        ("no-route", []),
        ("unknown", []),
    ],
)
def test_each_kind_has_its_patience(reason: Reason, expected: list[float]) -> None:
    assert delays(reason) == expected
    assert bool(expected) == (reason in RETRYABLE)


@given(
    reason=some.sampled_from(sorted(RETRYABLE)),
    chance=some.floats(0, 1, exclude_max=True),
)
def test_waits_are_spread_and_bounded(reason: Reason, chance: float) -> None:
    for even, spread in zip(delays(reason), delays(reason, chance=chance), strict=True):
        assert abs(spread - even) <= even * limits.RETRY_SPREAD + 1e-9
        assert spread <= limits.RETRY_SECONDS_MAX * (1 + limits.RETRY_SPREAD)


@pytest.mark.parametrize("told", [0, 1, 30_000, limits.RETRY_TOLD_SECONDS_MAX * 1000])
def test_what_the_provider_asks_for_is_never_shortened(told: int) -> None:
    assert set(delays("overload", chance=0, told=told)) == {told / 1000}


def test_a_provider_that_asks_for_too_much_is_not_waited_for() -> None:
    told = limits.RETRY_TOLD_SECONDS_MAX * 1000 + 1
    assert delays("rate-limit", told=told) == []


@pytest.mark.parametrize(
    ("reason", "told", "words"),
    [
        ("rate-limit", None, "no"),
        ("rate-limit", 1_000, "no"),
        ("rate-limit", 45 * 60_000, "no (it asks to come back in 45 min)"),
        ("overload", 3 * 3_600_000, "no (it asks to come back in 3 h)"),
        ("quota-exceeded", 3 * 3_600_000, "no"),
    ],
)
def test_a_wait_that_is_too_long_is_told(reason: Reason, told: int | None, words: str) -> None:
    assert retry.failure_message(LLMError(reason, "no", retry_after_ms=told)) == words


@pytest.mark.parametrize(("due", "left"), [(500, 0.0), (1_000, 0.0), (2_500, 1.5), (10**13, 4.0)])
def test_a_clock_that_was_set_back_makes_nobody_wait_for_years(due: int, left: float) -> None:
    waits = Retry(failed=1, due=due, delay=4_000, step=1, message="busy")
    assert retry.remaining_seconds(waits, now=1_000) == left
