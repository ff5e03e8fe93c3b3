"""Which model of a chain answers, who stands in for it, and for how long a model rests."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.core import limits
from perdure.core.models import model_chain
from perdure.core.models.model_chain import Rest
from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError, Reason
from perdure.schema.models.model import ModelRef

NOW = 1_700_000_000_000
FIRST, SECOND, THIRD = (ModelRef(id=name, provider_id="p") for name in ("a", "b", "c"))
CHAIN = (FIRST, SECOND, THIRD)


def rest(model: ModelRef, seconds: float, failed: int = 1) -> Rest:
    until = NOW + round(seconds * 1000)
    return Rest(
        provider_id=model.provider_id, model_id=model.id, until=until, failed=failed, message=""
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (FIRST, CHAIN),
        (SECOND, (SECOND, THIRD)),
        (THIRD, (THIRD,)),
        (ModelRef(id="a", provider_id="other"), (ModelRef(id="a", provider_id="other"),)),
        (ModelRef(id="a", provider_id="p", variant="high"), None),
    ],
)
def test_a_chosen_model_is_followed_by_those_after_it(
    chosen: ModelRef, expected: tuple[ModelRef, ...] | None
) -> None:
    assert model_chain.chain_of(chosen, CHAIN) == (expected or (chosen, SECOND, THIRD))


@pytest.mark.parametrize(
    ("rests", "expected"),
    [
        ([], [FIRST, SECOND, THIRD]),
        ([rest(FIRST, 10)], [SECOND, THIRD, FIRST]),
        ([rest(FIRST, -1)], [FIRST, SECOND, THIRD]),
        ([rest(FIRST, 10), rest(SECOND, 5)], [THIRD, SECOND, FIRST]),
        ([rest(FIRST, 10), rest(SECOND, 5), rest(THIRD, 7)], [SECOND, THIRD, FIRST]),
    ],
)
def test_those_that_rest_come_last(rests: list[Rest], expected: list[ModelRef]) -> None:
    assert model_chain.order(CHAIN, rests, now=NOW) == expected


@pytest.mark.parametrize(
    ("reason", "seconds", "hands_over"),
    [
        ("rate-limit", 5, False),
        ("rate-limit", 31, True),
        ("rate-limit", None, True),
        ("quota-exceeded", None, True),
        ("timeout", None, True),
        ("overload", None, True),
        ("transport", 1, False),
        ("transport", None, True),
        ("authentication", None, False),
        ("invalid-request", None, False),
        ("content-policy", None, False),
        ("overflow", None, False),
    ],
)
def test_another_model_answers_instead_of_a_long_wait_or_a_failure(
    reason: Reason, seconds: float | None, hands_over: bool
) -> None:
    planned = None
    if seconds is not None:
        planned = Retry(failed=1, due=0, delay=round(seconds * 1000), step=1, message="")
    assert model_chain.may_hand_over(LLMError(reason, "no"), planned) is hands_over


def test_a_rest_is_as_long_as_the_provider_says_else_it_doubles() -> None:
    told = LLMError("rate-limit", "later", retry_after_ms=2_400_000)
    assert model_chain.rest_after(FIRST, told, None, now=NOW).until == NOW + 2_400_000
    down = LLMError("overload", "down")
    lengths: list[int] = []
    before, now = None, NOW
    for _ in range(9):
        before = model_chain.rest_after(FIRST, down, before, now=now)
        lengths.append(before.until - now)
        now = before.until
    assert lengths[:3] == [60_000, 120_000, 240_000]
    assert lengths[-1] == limits.CHAIN_REST_SECONDS_MAX * 1000
    later = now + round(limits.CHAIN_REST_SECONDS_MAX * 1000)
    assert model_chain.rest_after(FIRST, down, before, now=later).failed == 1


@given(rests=some.lists(some.builds(rest, some.sampled_from(CHAIN), some.floats(-100, 100))))
def test_every_model_of_a_chain_is_tried_once(rests: list[Rest]) -> None:
    ordered = model_chain.order(CHAIN, rests, now=NOW)
    assert sorted(model.id for model in ordered) == ["a", "b", "c"]
    waits = [model_chain.resting_until(model, rests, now=NOW) for model in ordered]
    assert waits == sorted(waits)
