"""When a failed request is sent again: by its kind, never for ever, never sooner than asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.core import limits
from perdure.core.session import retry
from perdure.core.session.retry import USUAL_PATIENCE, Patience, Retry
from perdure.llm.error import RENEWED, RETRYABLE, LLMError, Reason


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


@pytest.mark.parametrize("told", [0, 1, 30_000, limits.RETRY_PATIENCE_SECONDS * 1000])
def test_what_the_provider_asks_for_is_never_shortened(told: int) -> None:
    assert set(delays("overload", chance=0, told=told)) == {told / 1000}


@given(
    reason=some.sampled_from([*sorted(RETRYABLE), RENEWED]),
    told=some.lists(some.none() | some.integers(0, 10**9), min_size=1, max_size=2_000),
    chance=some.floats(0, 1, exclude_max=True),
    patience=some.just(USUAL_PATIENCE)
    | some.floats(0.1, 10**6).map(lambda seconds: Patience(seconds=seconds, configured=True)),
)
def test_all_waits_of_a_request_are_within_the_patience(
    reason: Reason, told: list[int | None], chance: float, patience: Patience
) -> None:
    waited, failed = 0.0, 0
    for each in told:
        failed += 1
        error = LLMError(reason, "no", retry_after_ms=each)
        delay = retry.delay_seconds(
            error, failed=failed, chance=chance, waited=waited, patience=patience
        )
        if delay is None:
            return
        assert each is None or delay >= each / 1000
        waited += delay
        assert waited <= patience.seconds
    assert failed <= 6 or patience.configured


def test_a_configured_patience_outlasts_an_outage_and_asks_seldom() -> None:
    hours = Patience(seconds=6 * 3600, configured=True)
    waits: list[float] = []
    error = LLMError("transport", "unreachable")
    while (
        delay := retry.delay_seconds(
            error, failed=len(waits) + 1, chance=0.5, waited=sum(waits), patience=hours
        )
    ) is not None:
        waits.append(delay)
    assert waits[:2] == [0.5, 1]
    assert max(waits) == waits[-1] == limits.RETRY_LATER_SECONDS_MAX
    assert hours.seconds - limits.RETRY_LATER_SECONDS_MAX <= sum(waits) <= hours.seconds
    assert len(waits) < 100


def test_a_provider_that_asks_for_too_much_is_not_waited_for() -> None:
    told = limits.RETRY_PATIENCE_SECONDS * 1000 + 1
    assert delays("rate-limit", told=told) == []


@pytest.mark.parametrize(
    ("reason", "told", "words"),
    [
        ("rate-limit", None, "no"),
        ("rate-limit", 1_000, "no"),
        ("rate-limit", 45 * 60_000, "no (it asks to come back in 45 min, later"),
        ("overload", 3 * 3_600_000, "no (it asks to come back in 3 h, later"),
        ("quota-exceeded", 3 * 3_600_000, "no (it asks to come back in 3 h, later"),
        ("invalid-request", 3 * 3_600_000, "no"),
    ],
)
def test_a_wait_that_is_too_long_is_told(reason: Reason, told: int | None, words: str) -> None:
    message = retry.failure_message(LLMError(reason, "no", retry_after_ms=told))
    assert message.partition(" than")[0] == words


@pytest.mark.parametrize(("due", "left"), [(500, 0.0), (1_000, 0.0), (2_500, 1.5), (10**13, 4.0)])
def test_a_clock_that_was_set_back_makes_nobody_wait_for_years(due: int, left: float) -> None:
    waits = Retry(failed=1, due=due, delay=4_000, step=1, message="busy")
    assert retry.remaining_seconds(waits, now=1_000) == left
