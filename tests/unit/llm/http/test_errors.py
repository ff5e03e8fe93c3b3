"""Every status and body that a provider may refuse with, and what may be shown of it."""

import pytest

from perdure.llm.error import LLMError
from perdure.llm.http import error_body, errors, reset_time
from perdure.schema import codec, redaction
from perdure.schema.codec import JsonValue

NOW = 1_700_000_000_000  # Tue, 14 Nov 2023 22:13:20 GMT


def refused(
    status: int,
    body: JsonValue = "",
    *,
    secrets: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
) -> LLMError:
    raw = body.encode() if isinstance(body, str) else codec.encode(body)
    return errors.from_response(
        status=status, headers=headers or {}, body=raw, secrets=secrets, now_millis=NOW
    )


@pytest.mark.parametrize(
    ("status", "body", "reason", "retryable"),
    [
        (302, "", "unknown", False),
        (400, "bad", "invalid-request", False),
        (400, "blocked by our content policy", "content-policy", False),
        (401, "no", "authentication", False),
        (402, "pay", "quota-exceeded", False),
        (403, "no", "authentication", False),
        (403, "flagged by the safety system", "content-policy", False),
        (404, "no such model", "invalid-request", False),
        (408, "", "provider-internal", True),
        (409, "", "invalid-request", False),
        (413, "", "overflow", False),
        (422, "", "invalid-request", False),
        (429, "slow down", "rate-limit", True),
        (429, {"error": {"code": "insufficient_quota", "message": "x"}}, "quota-exceeded", False),
        (429, "You exceeded your current quota, see billing", "quota-exceeded", False),
        (500, "oops", "provider-internal", True),
        (502, "<html><title>Bad gateway</title></html>", "provider-internal", True),
        (503, "", "overload", True),
        (504, "", "provider-internal", True),
        (529, "overloaded", "overload", True),
    ],
)
def test_a_status_has_one_meaning(
    status: int, body: JsonValue, reason: str, retryable: bool
) -> None:
    error = refused(status, body)
    assert (error.reason, error.retryable, error.status) == (reason, retryable, status)


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size",
        "Input is too long for requested model",
        "Please reduce the length of the messages",
        "input token count 5 exceeds the token limit exceeded",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 422, 429, 500, 502])
def test_a_conversation_that_does_not_fit_is_recognised(text: str, status: int) -> None:
    assert refused(status, {"error": {"message": text}}).overflow
    assert not refused(status, {"error": {"message": f"{text}; tokens per minute"}}).overflow


@pytest.mark.parametrize(
    "text", ["request_too_large", "too many tokens", "token limit exceeded", "Payload too large"]
)
def test_words_that_may_be_about_a_rate_depend_on_the_status(text: str) -> None:
    assert refused(400, {"error": {"message": text}}).overflow
    assert not refused(429, {"error": {"message": text}}).overflow


@pytest.mark.parametrize(
    "text",
    [
        "Your conversation has more than 9000 tokens, which this model cannot take",
        "The combined input must be at most 32000 tokens; shorten it",
        "messages: total size greater than 200000 characters",
    ],
)
def test_an_overflow_is_recognised_in_words_that_are_new(text: str) -> None:
    assert refused(400, {"error": {"message": text}}).overflow
    assert not refused(429, {"error": {"message": text}}).overflow


@pytest.mark.parametrize(
    "text",
    [
        "The image in the input is too large: more than 5 MB",
        "max_tokens must be less than 8192 for this input",
        "tools.0.name: the length of the input exceeds 64 characters",
        "The output exceeds the maximum length for this prompt",
    ],
)
def test_other_things_that_are_too_long_are_no_overflow(text: str) -> None:
    assert refused(400, {"error": {"message": text}}).reason == "invalid-request"


@pytest.mark.parametrize("depth", range(6))
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("prompt is too long: 9 tokens > 8 maximum", "overflow"),
        ("Limit 6000, Requested 7000 tokens per minute", "overflow"),
        ("You exceeded your current quota", "quota-exceeded"),
        ("blocked by our content policy", "content-policy"),
    ],
)
def test_an_error_is_found_inside_any_number_of_gateways(
    depth: int, words: str, reason: str, *, as_text: bool
) -> None:
    body: JsonValue = {"error": {"message": words, "code": 400}}
    for _ in range(depth):
        raw = codec.encode(body).decode() if as_text else body
        body = {"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}
    error = refused(400, body)
    assert error.reason == reason
    assert words in error.message


def test_what_a_server_repeats_of_the_request_does_not_count() -> None:
    echoed = {"msg": "Extra inputs are not permitted", "input": "the prompt is too long"}
    assert refused(422, {"detail": [echoed]}).reason == "invalid-request"


@pytest.mark.parametrize(
    ("status", "body", "overflow"),
    [
        (413, "", True),
        (413, "<html><title>413 Entity Error</title></html>", False),
        (400, "too many tokens per minute: rate limit", False),
        (400, "unknown field", False),
    ],
)
def test_other_limits_are_not_taken_for_it(status: int, body: str, overflow: bool) -> None:
    assert refused(status, body).overflow is overflow


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "A"}}, "A"),
        ({"error": "B"}, "B"),
        ({"message": "C"}, "C"),
        ({"detail": "D"}, "D"),
        ({"detail": [{"msg": "E", "loc": ["body", "messages", 1]}]}, "E: body.messages.1"),
        ({"detail": [{"msg": "E", "loc": "body"}]}, "E"),
        ([{"error": {"message": "F"}}], "F"),
        ({"errors": [{"message": "G"}]}, "G"),
        ({"what": 1}, '{"what":1}'),
        ("plain\n text\x00 ", "plain text"),
        ("<html><title>Bad gateway</title>", "Bad gateway"),
        ("<p>x", "a page of HTML"),
        ("[" * 100_000, "[" * 499 + "…"),
    ],
)
def test_the_message_is_found_in_the_usual_places(body: JsonValue, message: str) -> None:
    assert refused(500, body).message == f"The provider answered HTTP 500: {message}"


def test_a_body_that_says_nothing_leaves_the_status() -> None:
    assert refused(503).message == "The provider answered HTTP 503"


@pytest.mark.parametrize(
    ("headers", "millis"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3_000),
        ({"retry-after": " 1.5 "}, 1_500),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:25 GMT"}, 5_000),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0),
        ({"retry-after": "31536000"}, reset_time.WAIT_MILLIS_MAX),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_waiting_times_are_read_in_every_form(headers: dict[str, str], millis: int | None) -> None:
    assert refused(429, headers=headers).retry_after_ms == millis


CANARY = "canary0value0of0secret"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {CANARY}",
        f"header authorization: Bearer {CANARY} refused",
        f'{{"authorization": "Bearer {CANARY}"}}',
        f'{{"x-api-key":"{CANARY}"}}',
        f'{{\\"api_key\\": \\"{CANARY}\\"}}',
        f"https://host/v1?key={CANARY}&x=1",
        f"https://user:{CANARY}@host/",
        f"token = {CANARY}",
        f"sk-{CANARY}",
        f"sk-proj-{CANARY}***tail",
        f"ghp_{CANARY}",
        f"AIza{CANARY}",
        f"Basic {CANARY}==",
        f"cookie: {CANARY}",
        f"client_secret={CANARY}",
    ],
)
def test_no_canary_is_ever_shown(text: str) -> None:
    known = refused(500, text, secrets=(CANARY,))
    assert CANARY not in known.message
    if "Incorrect" not in text:
        unknown = refused(500, {"error": {"message": text}})
        assert CANARY not in unknown.message
        assert "[redacted]" in unknown.message


def test_the_rest_of_a_message_stays_readable() -> None:
    text = "The key must be given; the tokens per answer are limited to 5."
    assert redaction.redact(text, ("",)) == text


def test_a_secret_at_the_cut_is_gone_before_the_cut() -> None:
    text = "x" * (errors.MESSAGE_CHARS_MAX - 5) + CANARY
    shown = errors.clean_message(text, (CANARY,))
    assert "canary" not in shown
    assert len(shown) <= errors.MESSAGE_CHARS_MAX


@pytest.mark.parametrize(
    ("header", "secret"),
    [
        *(("Authorization", True), ("x-api-key", True), ("X-Gateway-Pass", True), ("x", True)),
        *(("user-agent", False), ("Anthropic-Beta", False), ("anthropic-version", False)),
        *(("X-Title", False), ("HTTP-Referer", False)),
    ],
)
def test_headers_that_may_hold_credentials_are_known(header: str, secret: bool) -> None:
    assert errors.may_carry_secret(header) is secret


def test_hostile_bodies_are_read_in_reasonable_time() -> None:
    for hostile in ("://" * 5000, '"key": "' * 2000, "exceed " * 2000, "<title " * 2000):
        assert len(refused(400, hostile[: error_body.BODY_BYTES_MAX]).message) < 600


def test_an_error_of_any_depth_and_size_has_a_short_text() -> None:
    deep: JsonValue = {"message": "the reason"}
    for _ in range(10):
        deep = {"error": [deep]}
    assert error_body.detail_of(deep).text != "the reason"
    assert (
        error_body.detail_of({"error": [{"error": {"message": "the reason"}}]}).text == "the reason"
    )
    for _ in range(400):
        deep = {"error": deep}
    large = {"error": {"message": "m" * 10**7, "code": "c" * 10**6}}
    for detail in (
        error_body.detail_of(deep),
        error_body.detail_of(large),
        error_body.detail_of(["x" * 10**7]),
    ):
        assert len(detail.full_text) < 20_000
        assert len(errors.clean_message(detail.text, ())) <= errors.MESSAGE_CHARS_MAX
