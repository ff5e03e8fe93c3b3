"""When a refused request may be sent again: what each provider says, in headers and in bodies."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.llm.http import errors, reset_time
from perdure.llm.http.reset_time import WAIT_MILLIS_MAX

NOW = 1_700_000_000_000
"""2023-11-14T22:13:20Z"""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000

HEADERS = [
    # Anthropic API: rate limits, response headers.
    (
        {
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2023-11-14T22:13:21Z",
            "anthropic-ratelimit-input-tokens-remaining": "0",
            "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:14:00Z",
        },
        40 * SECOND,
    ),
    # Claude subscriptions.
    (
        {
            "anthropic-ratelimit-unified-status": "rejected",
            "anthropic-ratelimit-unified-reset": "1700007200",
            "anthropic-ratelimit-unified-7d-status": "allowed",
            "anthropic-ratelimit-unified-7d-reset": "1700400000",
        },
        2 * HOUR,
    ),
    # OpenAI API and Groq: durations.
    (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "2m59.56s",
            "x-ratelimit-remaining-tokens": "5999",
            "x-ratelimit-reset-tokens": "7.66s",
        },
        179_560,
    ),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 120),
    ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3s"}, 3_723_000),
    # Cerebras: seconds, for a day and for a minute.
    (
        {
            "x-ratelimit-remaining-requests-day": "0",
            "x-ratelimit-reset-requests-day": "33011.382",
            "x-ratelimit-remaining-tokens-minute": "0",
            "x-ratelimit-reset-tokens-minute": "11.382",
        },
        33_011_382,
    ),
    # Mistral.
    ({"ratelimitbysize-remaining": "0", "ratelimitbysize-reset": "33"}, 33 * SECOND),
    # OpenRouter: milliseconds since 1970. GitHub Models: seconds since 1970.
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700002400000"}, 40 * MINUTE),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700002400"}, 40 * MINUTE),
    # ChatGPT plans: the window that is used up, not the other one.
    (
        {
            "x-codex-primary-used-percent": "100",
            "x-codex-primary-reset-after-seconds": "13873",
            "x-codex-secondary-used-percent": "80",
            "x-codex-secondary-reset-after-seconds": "316705",
        },
        13_873_000,
    ),
    # Azure OpenAI.
    ({"x-ms-retry-after-ms": "1300", "retry-after": "2"}, 1_300),
    # A limit that is not used up is not the reason, and what is no time is none.
    ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "2m"}, None),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, None),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-5"}, None),
    # A moment that has passed is no reason to wait.
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1690000000"}, 0),
]

BODIES = [
    # OpenAI and Groq name one limit in words, also one for a day.
    (
        (
            b'{"error":{"message":"Rate limit reached for model `x` on tokens per day (TPD): Limit '
            b'100000, Used 99336, Requested 1180. Please try again in 7m26.4s. Visit"}}'
        ),
        446_400,
    ),
    (b'{"error":{"message":"Please try again in 2h13m5.5s."}}', 7_985_500),
    # Azure OpenAI.
    (b'{"error":{"code":"429","message":"Please retry after 26 seconds."}}', 26 * SECOND),
    (b"Rate limited. Try again in 1 hour and 5 minutes.", 65 * MINUTE),
    (b"Please try again after 3 days", 72 * HOUR),
    # ChatGPT plans.
    (
        (
            b'{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached",'
            b'"plan_type":"plus","resets_at":1700002400,"resets_in_seconds":2400}}'
        ),
        40 * MINUTE,
    ),
    (b'{"error":{"type":"usage_limit_reached","resets_in_seconds":529498}}', 529_498_000),
    (b'{"error":{"resets_at":"2023-11-14T22:53:20+00:00"}}', 40 * MINUTE),
    # Z.ai: Beijing time.
    (
        (
            b'{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will '
            b'reset at 2023-11-15 06:53:20"}}'
        ),
        40 * MINUTE,
    ),
    (
        '{"error":{"code":"1308","message":"已达到 5 小时的使用上限。您的限额将在 '
        '2023-11-15 06:53:20 重置。"}}'.encode(),
        40 * MINUTE,
    ),
    (b"Your limit will reset at 2023-11-14T22:53:20Z", 40 * MINUTE),
    # Claude subscriptions.
    (b'{"error":{"message":"Claude AI usage limit reached|1700002400"}}', 40 * MINUTE),
    # OpenRouter repeats headers, and wraps the body of another provider as a text.
    (
        (
            b'{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429,"metadata":'
            b'{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0",'
            b'"X-RateLimit-Reset":"1700002400000"}}}}'
        ),
        40 * MINUTE,
    ),
    (rb'{"error":{"metadata":{"raw":"{\"details\":[{\"retryDelay\":\"34.5s\"}]}"}}}', 34_500),
    # Google: 10 hours until midnight Pacific time, whatever `retryDelay` says.
    (
        (
            b'{"error":{"details":[{"violations":[{"quotaId":'
            b'"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"27s"}]}}'
        ),
        35_200_000,
    ),
    (b'{"retryDelay":"0s"}', 0),
    (b'{"retry_after_ms": 1500}', 1_500),
    (b'{"resets_at": 99999999999999999999999999}', None),
    (b"You can try again in a while", None),
    (b"resets at 2023-99-99 00:00:00", None),
    (b"", None),
]


@pytest.mark.parametrize(("headers", "millis"), HEADERS)
def test_headers_say_when_a_limit_is_renewed(headers: dict[str, str], millis: int | None) -> None:
    assert reset_time.find_wait(headers, b"", now_millis=NOW) == millis


@pytest.mark.parametrize(("body", "millis"), BODIES)
def test_a_body_says_when_to_come_back(body: bytes, millis: int | None) -> None:
    assert reset_time.find_wait({}, body, now_millis=NOW) == millis


def test_retry_after_comes_before_the_body_and_the_body_before_other_headers() -> None:
    limits = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}
    body = b"Please try again in 20s"
    assert reset_time.find_wait(limits, body, now_millis=NOW) == 20 * SECOND
    told = {**limits, "retry-after": "5"}
    assert reset_time.find_wait(told, body, now_millis=NOW) == 5 * SECOND


def test_a_plan_that_is_renewed_later_is_a_quota_that_passes() -> None:
    refusal = errors.from_response(
        status=429,
        headers={},
        body=BODIES[5][0],
        secrets=(),
        now_millis=NOW,
    )
    assert (refusal.reason, refusal.retry_after_ms) == ("quota-exceeded", 40 * MINUTE)
    assert refusal.retryable


def test_a_quota_without_a_time_does_not_pass_by_itself() -> None:
    body = b'{"error":{"message":"insufficient_quota"}}'
    refusal = errors.from_response(status=429, headers={}, body=body, secrets=(), now_millis=NOW)
    assert (refusal.reason, refusal.retryable) == ("quota-exceeded", False)


@given(
    name=some.sampled_from(
        ["retry-after", "retry-after-ms", "x-ratelimit-reset", "anthropic-ratelimit-tokens-reset"]
    ),
    value=some.text(max_size=60) | some.integers(-(10**30), 10**30).map(str),
    body=some.binary(max_size=200),
)
def test_no_header_or_body_makes_a_wait_that_is_negative_or_endless(
    name: str, value: str, body: bytes
) -> None:
    wait = reset_time.find_wait({name: value}, body, now_millis=NOW)
    assert wait is None or 0 <= wait <= WAIT_MILLIS_MAX
