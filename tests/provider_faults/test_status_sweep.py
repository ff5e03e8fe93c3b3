"""Refusals: each status in its class, tried again only where that can help, and never for long."""

from email.utils import formatdate
from typing import Final

import pytest

from perdure.testing import provider_answer
from perdure.testing.manual_clock import EPOCH_MILLIS
from tests.provider_faults.sweep import Sweep

TRIED_AGAIN: Final = (408, 429, 500, 502, 503, 504, 529)
FINAL: Final = (400, 401, 403, 404, 409, 413, 422)
NOW: Final = EPOCH_MILLIS / 1000
LONGEST: Final = 10.0

WAITS: Final[dict[str, tuple[dict[str, str], list[float]]]] = {
    "none": ({}, [0.5, 1.0]),
    "seconds": ({"retry-after": "2"}, [2.0, 2.0]),
    "milliseconds": ({"retry-after-ms": "250"}, [0.25, 0.25]),
    "a date": ({"retry-after": formatdate(NOW + 3, usegmt=True)}, [3.0, 3.0]),
    "a date that has passed": ({"retry-after": formatdate(NOW - 60, usegmt=True)}, [0.0, 0.0]),
    "a year": ({"retry-after": str(365 * 86_400)}, [LONGEST, LONGEST]),
    "a year as a date": (
        {"retry-after": formatdate(NOW + 365 * 86_400, usegmt=True)},
        [LONGEST, LONGEST],
    ),
    "junk": ({"retry-after": "soon, I hope"}, [0.5, 1.0]),
    "not a number": ({"retry-after": "nan"}, [0.5, 1.0]),
    "below zero": ({"retry-after": "-5"}, [0.5, 1.0]),
}


@pytest.mark.parametrize("wait", WAITS)
async def test_what_may_pass_is_tried_again_after_the_wait_that_was_asked_for(
    sweep: Sweep, wait: str
) -> None:
    headers, expected = WAITS[wait]
    for status in TRIED_AGAIN:
        sweep.waits.waited.clear()
        met = await sweep.meet(provider_answer.refusal(status, headers=headers))
        met.check((status, wait))
        assert (met.attempts, sweep.waits.waited) == (3, expected), (status, wait)
        assert str(status) in met.error


@pytest.mark.parametrize("wait", WAITS)
async def test_what_will_not_pass_is_told_at_once(sweep: Sweep, wait: str) -> None:
    headers, _ = WAITS[wait]
    for status in FINAL:
        sweep.waits.waited.clear()
        met = await sweep.meet(provider_answer.refusal(status, headers=headers))
        met.check((status, wait))
        assert (met.attempts, sweep.waits.waited) == (1, []), (status, wait)
        assert str(status) in met.error


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
    assert (met.error, sweep.waits.waited) == ("", [0.5, 1.0])
