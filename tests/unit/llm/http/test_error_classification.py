"""Error bodies as providers, proxies and gateways really send them, and what kind each is."""

from pathlib import Path
from typing import Final, Literal

import msgspec
import pytest

from perdure.core.session import retry
from perdure.llm.error import RENEWED, RETRYABLE, LLMError, Reason
from perdure.llm.http import error_body, errors, reset_time
from perdure.llm.http.error_body import ErrorDetail

NOW: Final = 1_700_000_000_000
Case = tuple[int, bytes, Reason]
FollowUp = Literal["compaction", "retry", "wait", "login", "fail"]


class Refusal(msgspec.Struct, forbid_unknown_fields=True):
    """An error body of `error_bodies.jsonl`: who sends it, what it is, and what follows."""

    provider: str
    status: int
    reason: Reason
    follows: FollowUp
    body: msgspec.Raw
    source: str
    """Where the provider documents it, or where a user has quoted it."""


BODIES: Final = tuple(
    msgspec.json.decode(line, type=Refusal)
    for line in Path(__file__).with_name("error_bodies.jsonl").read_bytes().splitlines()
)

ELSEWHERE: Final[tuple[Case, ...]] = (
    (429, b"<html><head><title>429 Too Many Requests</title></head></html>", "rate-limit"),
    (502, b"<html><head><title>502 Bad Gateway</title></head></html>", "provider-internal"),
    (503, b"<html><title>503 Service Temporarily Unavailable</title>", "overload"),
    (504, b"<html><title>504 Gateway Time-out</title>", "provider-internal"),
    (524, b"<!DOCTYPE html><title>A timeout occurred</title>", "provider-internal"),
    (413, b"<html><title>413 Entity Error</title></html>", "invalid-request"),
    (403, b"<!DOCTYPE html><title>Just a moment...</title>", "authentication"),
    (402, b'{"error":{"message":"Insufficient credits","code":402}}', "quota-exceeded"),
    (500, b'{"error":"the request exceeds the available context size"}', "overflow"),
    (500, b'{"error":{"message":"litellm: ContextWindowExceeded context window"}}', "overflow"),
    (400, b'{"detail":"Rate limit exceeded"}', "rate-limit"),
    (413, b"", "overflow"),
    (400, b"", "invalid-request"),
    (401, b"", "authentication"),
    (429, b"", "rate-limit"),
    (500, b"", "provider-internal"),
    (529, b"", "overload"),
    (304, b"", "unknown"),
    (400, b"\xff\xfe\x00", "invalid-request"),
    (400, b"[" * 16_000, "invalid-request"),
    (400, b'{"error":' * 3_000, "invalid-request"),
)


def refused(status: int, body: bytes) -> LLMError:
    return errors.from_response(status=status, headers={}, body=body, secrets=(), now_millis=NOW)


def follow_up(error: LLMError) -> FollowUp:
    """What the runtime does after a refusal."""
    if error.overflow:
        return "compaction"
    if retry.delay_seconds(error, failed=1, chance=0.5) is not None:
        return "retry" if error.retry_after_ms is None else "wait"
    return "login" if error.reason == "authentication" else "fail"


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{n}-{case.provider}") for n, case in enumerate(BODIES)]
)
def test_an_error_body_of_a_provider_has_its_kind_and_what_follows(case: Refusal) -> None:
    body = bytes(case.body)
    text = msgspec.json.decode(body).encode() if body.startswith(b'"') else body
    error = refused(case.status, text)
    if case.status == 200:
        assert error_body.is_error_body(text)
        error = LLMError(error_body.detail_of_body(text).reason(), error.message)
    assert (error.reason, follow_up(error)) == (case.reason, case.follows)


def test_the_table_of_error_bodies_is_large_and_has_every_follow_up() -> None:
    assert len(BODIES) >= 120
    assert len({case.provider for case in BODIES}) >= 30
    assert {case.follows for case in BODIES} == {"compaction", "retry", "wait", "login", "fail"}
    assert sum(case.follows == "compaction" for case in BODIES) >= 50


@pytest.mark.parametrize(("status", "body", "reason"), ELSEWHERE)
def test_a_recorded_refusal_has_its_kind(status: int, body: bytes, reason: Reason) -> None:
    error = refused(status, body)
    assert error.reason == reason
    assert error.overflow is (reason == "overflow")
    renewed = reason == RENEWED and error.retry_after_ms is not None
    assert error.retryable is (renewed or reason in RETRYABLE)


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        ("overloaded_error", "Overloaded", "overload"),
        ("rate_limit_exceeded", "Slow", "rate-limit"),
        ("insufficient_quota", "No money", "quota-exceeded"),
        ("context_length_exceeded", "Too long", "overflow"),
        ("server_error", "Oops", "provider-internal"),
        ("content_filter", "No", "content-policy"),
        ("invalid_api_key", "No", "authentication"),
        ("invalid_request_error", "No", "invalid-request"),
        ("throttlingException", "Too many tokens, please wait", "rate-limit"),
        ("502", "upstream", "provider-internal"),
        ("", "", "unknown"),
        ("", "something else", "unknown"),
    ],
)
def test_an_error_inside_a_stream_has_its_kind(code: str, text: str, reason: Reason) -> None:
    assert ErrorDetail(text, code).reason() == reason


@pytest.mark.parametrize(
    ("body", "millis"),
    [
        (b'{"error":{"message":"Please try again in 8.5s."}}', 8_500),
        (b'{"error":{"message":"Please try again in 250ms."}}', 250),
        (b'{"error":{"message":"Please try again in 2m"}}', 120_000),
        (b'{"error":{"details":[{"retryDelay":"27.4s"}]}}', 27_400),
        (b'{"error":{"details":[{"retryDelay": "999999m"}]}}', reset_time.WAIT_MILLIS_MAX),
        (b'{"error":{"message":"try again in a while"}}', None),
        (b'{"error":{"message":"try again in -5s"}}', None),
        (b"try again in " * 1_000, None),
    ],
)
def test_a_wait_that_only_the_body_names_is_heard(body: bytes, millis: int | None) -> None:
    assert refused(429, body).retry_after_ms == millis
