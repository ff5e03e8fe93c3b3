"""Refusals: each status in its class, tried again only where that can help, and never for long."""

from email.utils import formatdate
from typing import Final

import pytest

from perdure.core import limits
from perdure.testing import provider_answer
from perdure.testing.manual_clock import EPOCH_MILLIS
from tests.figures import Figure
from tests.provider_faults.sweep import Sweep

BROKEN: Final = (408, 500, 502, 504)
CROWDED: Final = (429, 503, 529)
FINAL: Final = (400, 401, 403, 404, 409, 413, 422)
NOW: Final = EPOCH_MILLIS / 1000
CASES: Final = "refusals of a provider"

WAITS: Final[dict[str, tuple[dict[str, str], float | None]]] = {
    "none": ({}, None),
    "seconds": ({"retry-after": "2"}, 2.0),
    "milliseconds": ({"retry-after-ms": "250"}, 0.25),
    "ten minutes": ({"retry-after": "600"}, 600.0),
    "a date": ({"retry-after": formatdate(NOW + 3, usegmt=True)}, 3.0),
    "a date that has passed": ({"retry-after": formatdate(NOW - 60, usegmt=True)}, 0.0),
    "junk": ({"retry-after": "soon, I hope"}, None),
    "not a number": ({"retry-after": "nan"}, None),
    "below zero": ({"retry-after": "-5"}, None),
}
"""How a wait is asked for, and how long it is; None: by our own measure."""
YEAR: Final = (str(365 * 86_400), formatdate(NOW + 365 * 86_400, usegmt=True))


@pytest.mark.parametrize("wait", WAITS)
async def test_what_may_pass_is_tried_again_after_the_wait_that_was_asked_for(
    sweep: Sweep, wait: str, figure: Figure
) -> None:
    headers, told = WAITS[wait]
    for statuses, own in ((BROKEN, [0.5, 1.0]), (CROWDED, [1.0, 2.0, 4.0, 8.0, 16.0])):
        # All waits of a request are bounded together.
        most = len(own) if not told else min(len(own), int(limits.RETRY_PATIENCE_SECONDS // told))
        expected = own if told is None else [told] * most
        for status in statuses:
            sweep.waits.waited.clear()
            met = await sweep.meet(provider_answer.refusal(status, headers=headers))
            met.check((status, wait))
            assert met.attempts == len(expected) + 1, (status, wait)
            # A long wait is several sleeps.
            assert sum(sweep.waits.waited) == sum(expected), (status, wait)
            assert str(status) in met.error
            figure(CASES, 1)


@pytest.mark.parametrize("year", YEAR)
async def test_a_provider_that_asks_for_a_year_is_not_waited_for(
    sweep: Sweep, year: str, figure: Figure
) -> None:
    for status in (*BROKEN, *CROWDED):
        sweep.waits.waited.clear()
        met = await sweep.meet(provider_answer.refusal(status, headers={"retry-after": year}))
        met.check(status)
        assert (met.attempts, sweep.waits.waited) == (1, []), status
        # Longer waits than a month are not believed.
        assert "asks to come back in 31 days" in met.error
        figure(CASES, 1)


@pytest.mark.parametrize("wait", WAITS)
async def test_what_will_not_pass_is_told_at_once(sweep: Sweep, wait: str, figure: Figure) -> None:
    headers, _ = WAITS[wait]
    for status in FINAL:
        sweep.waits.waited.clear()
        met = await sweep.meet(provider_answer.refusal(status, headers=headers))
        met.check((status, wait))
        assert (met.attempts, sweep.waits.waited) == (1, []), (status, wait)
        assert str(status) in met.error
        figure(CASES, 1)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (429, "You exceeded your current quota, please check your billing"),
        (402, "payment required"),
        (400, "This was blocked by our content policy"),
    ],
)
async def test_a_refusal_that_says_why_is_not_tried_again(
    sweep: Sweep, status: int, said: str
) -> None:
    met = await sweep.meet(provider_answer.refusal(status, {"error": {"message": said}}))
    met.check(status)
    assert met.attempts == 1
    assert said in met.error


async def test_an_outage_that_passes_is_not_noticed(sweep: Sweep) -> None:
    sweep.provider.then(provider_answer.refusal(503), provider_answer.refusal(529))
    met = await sweep.meet(provider_answer.ProviderAnswer(body=provider_answer.chat_stream()))
    met.check("outage")
    assert (met.error, sweep.waits.waited) == ("", [1.0, 2.0])
