"""What all Sessions together may ask of a provider, and how long a request waits for its turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.core.models import provider_limits
from perdure.core.models.provider_limits import (
    NO_LIMITS,
    WINDOW_MILLIS,
    ProviderLimits,
    ProviderUse,
    wait_millis,
)

NOW = 1_000_000


def use(begun: int, ended: int | None = None, tokens: int = 10) -> ProviderUse:
    """A request that began and ended so many milliseconds ago."""
    return ProviderUse(
        begun=NOW - begun, ended=None if ended is None else NOW - ended, tokens=tokens
    )


@pytest.mark.parametrize(
    ("uses", "allowed", "wait"),
    [
        ([use(5)] * 100, NO_LIMITS, 0),
        ([use(5)], ProviderLimits(concurrent=2), 0),
        ([use(5), use(9)], ProviderLimits(concurrent=2), 250),
        ([use(5), use(9, 3)], ProviderLimits(concurrent=2), 0),
        ([use(20_000, 10_000)], ProviderLimits(requests=1), 40_000),
        ([use(50_000, 1), use(20_000, 1)], ProviderLimits(requests=2), 10_000),
        ([use(50_000, 1), use(20_000, 1)], ProviderLimits(requests=1), 40_000),
        ([use(60_000, 1)], ProviderLimits(requests=1), 0),
        ([use(9, 5_000, tokens=900)], ProviderLimits(tokens=1000), 0),
        ([use(9, 5_000, tokens=901)], ProviderLimits(tokens=1000), 55_000),
        (
            [use(9, 9_000, tokens=800), use(9, 5_000, tokens=200)],
            ProviderLimits(tokens=299),
            55_000,
        ),
        (
            [use(9, 9_000, tokens=800), use(9, 5_000, tokens=200)],
            ProviderLimits(tokens=310),
            51_000,
        ),
        ([use(9, 60_000, tokens=901)], ProviderLimits(tokens=1000), 0),
    ],
)
def test_a_request_waits_for_the_limit_that_is_reached(
    uses: list[ProviderUse], allowed: ProviderLimits, wait: int
) -> None:
    assert wait_millis(uses, allowed, tokens=100, now=NOW) == wait


def test_a_request_that_is_larger_than_the_limit_is_sent_alone() -> None:
    allowed = ProviderLimits(tokens=50)
    assert wait_millis([], allowed, tokens=100, now=NOW) == 0
    assert wait_millis([use(9, 5_000)], allowed, tokens=100, now=NOW) == 55_000


def drawn(begun: int, length: int, tokens: int) -> ProviderUse:
    ended = None if length > begun else NOW - begun + length
    return ProviderUse(begun=NOW - begun, ended=ended, tokens=tokens)


TIMES = some.integers(0, 100_000)
USES = some.lists(some.builds(drawn, TIMES, TIMES, some.integers(0, 1_000)), max_size=12)
MOST = some.none() | some.integers(1, 5)


@given(uses=USES, concurrent=MOST, requests=MOST, most=some.none() | some.integers(1, 3_000))
def test_after_its_wait_no_limit_is_exceeded(
    uses: list[ProviderUse], concurrent: int | None, requests: int | None, most: int | None
) -> None:
    allowed = ProviderLimits(concurrent=concurrent, requests=requests, tokens=most)
    now = NOW
    ended = [each for each in uses if each.ended is not None]
    for _ in range(100):
        wait = wait_millis(ended, allowed, tokens=100, now=now)
        if wait == 0:
            break
        now += wait
    begun = [each for each in ended if each.begun > now - WINDOW_MILLIS]
    assert requests is None or len(begun) < requests
    counted = [each for each in ended if (each.ended or 0) > now - WINDOW_MILLIS]
    tokens = sum(each.tokens for each in counted)
    assert most is None or tokens == 0 or tokens + 100 <= most
    assert now <= NOW + 2 * provider_limits.WINDOW_MILLIS
