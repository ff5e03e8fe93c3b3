"""The limit that a provider names when it refuses a request, in our tokens."""

import pytest

from perdure.core.request import provider_limit

REFUSED = 100_000


@pytest.mark.parametrize(
    ("refusal", "limit"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 95_238),
        (
            "This model's maximum context length is 8192 tokens. You requested 10240 tokens.",
            80_000,
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens (1048576).",
            87_381,
        ),
        ("This model's maximum prompt length is 131,072 but the request contains 262,144", 50_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000", 94_035),
        ("the request exceeds the available context size of 32768 tokens", 32_768),
        # Our estimate is below what the provider takes: nothing that is smaller is known.
        ("the maximum is 131072 tokens", None),
        ("context_length_exceeded", None),
        ("maximum context length is 9 tokens", None),
        ("HTTP 400", None),
        ("", None),
        ("1" * 5_000, None),
        ("9 + 9 > 9", None),
        ("1024 + 5000 > 2000", None),
    ],
)
def test_the_numbers_of_a_refusal_are_read(refusal: str, limit: int | None) -> None:
    assert provider_limit.find_limit(refusal, REFUSED) == limit


@pytest.mark.parametrize("text", ["1,2_3" * 40_000, "1" * 200_000, "1 + 2 " * 40_000, "," * 99_999])
def test_a_hostile_refusal_is_read_in_linear_time(text: str) -> None:
    found = provider_limit.find_limit(text, REFUSED)
    assert found is None or found < REFUSED
