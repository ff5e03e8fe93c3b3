"""Error bodies as providers, proxies and gateways really send them, and what kind each is."""

from typing import Final

import pytest

from perdure.llm.error import RENEWED, RETRYABLE, LLMError, Reason
from perdure.llm.http import errors, reset_time
from perdure.llm.http.errors import ErrorDetail

NOW: Final = 1_700_000_000_000
Case = tuple[int, bytes, Reason]

OPENAI: Final[tuple[Case, ...]] = (
    (
        400,
        (
            b'{"error":{"message":"This model\'s maximum context length is 128000 tokens. '
            b'However, your messages resulted in 130021 tokens.",'
            b'"type":"invalid_request_error","param":"messages",'
            b'"code":"context_length_exceeded"}}'
        ),
        "overflow",
    ),
    (
        429,
        (
            b'{"error":{"message":"Rate limit reached for gpt-5 in organization org-1 on '
            b"tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try "
            b'again in 8.5s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}'
        ),
        "rate-limit",
    ),
    (
        429,
        (
            b'{"error":{"message":"You exceeded your current quota, please check your '
            b'plan and billing details.","type":"insufficient_quota","param":null,'
            b'"code":"insufficient_quota"}}'
        ),
        "quota-exceeded",
    ),
    (
        401,
        (
            b'{"error":{"message":"Incorrect API key provided: sk-x.",'
            b'"type":"invalid_request_error","param":null,"code":"invalid_api_key"}}'
        ),
        "authentication",
    ),
    (
        404,
        (
            b'{"error":{"message":"The model `gpt-9` does not exist",'
            b'"type":"invalid_request_error","param":null,"code":"model_not_found"}}'
        ),
        "invalid-request",
    ),
    (
        400,
        (
            b'{"error":{"message":"Your request was rejected as a result of our safety '
            b'system.","type":"image_generation_user_error","code":"moderation_blocked"}}'
        ),
        "content-policy",
    ),
    (
        503,
        (
            b'{"error":{"message":"The engine is currently overloaded, please try again '
            b'later","type":"server_error","param":null,"code":null}}'
        ),
        "overload",
    ),
    (
        500,
        (
            b'{"error":{"message":"The server had an error while processing your '
            b'request.","type":"server_error","param":null,"code":null}}'
        ),
        "provider-internal",
    ),
    (
        400,
        (
            b'{"error":{"message":"The response was filtered due to the prompt triggering '
            b'the content management policy.","type":null,"param":"prompt",'
            b'"code":"content_filter","status":400}}'
        ),
        "content-policy",
    ),
    (
        400,
        (
            b'{"error":{"message":"Invalid schema for function read",'
            b'"type":"invalid_request_error","param":"tools[0]",'
            b'"code":"invalid_function_parameters"}}'
        ),
        "invalid-request",
    ),
)

ANTHROPIC: Final[tuple[Case, ...]] = (
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt '
            b'is too long: 210000 tokens > 200000 maximum"},"request_id":"req_1"}'
        ),
        "overflow",
    ),
    (
        413,
        (
            b'{"type":"error","error":{"type":"request_too_large","message":"Request '
            b'exceeds the maximum size"}}'
        ),
        "overflow",
    ),
    (
        429,
        (
            b'{"type":"error","error":{"type":"rate_limit_error","message":"This request '
            b"would exceed your organization's rate limit of 40,000 input tokens per "
            b'minute."}}'
        ),
        "rate-limit",
    ),
    (
        529,
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "overload",
    ),
    (
        500,
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        "overload",
    ),
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":"Your '
            b"credit balance is too low to access the API. Please go to Plans & "
            b'Billing."}}'
        ),
        "quota-exceeded",
    ),
    (
        401,
        b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
        "authentication",
    ),
    (
        403,
        b'{"type":"error","error":{"type":"permission_error","message":"Not allowed"}}',
        "authentication",
    ),
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":"Output '
            b'blocked by content filtering policy"}}'
        ),
        "content-policy",
    ),
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error",'
            b'"message":"messages.3: `tool_use` ids were found without `tool_result` '
            b'blocks"}}'
        ),
        "invalid-request",
    ),
    (
        500,
        b'{"type":"error","error":{"type":"api_error","message":"Internal server error"}}',
        "provider-internal",
    ),
)

GEMINI: Final[tuple[Case, ...]] = (
    (
        400,
        (
            b'[{"error":{"code":400,"message":"The input token count (1048600) exceeds '
            b'the maximum number of tokens allowed (1048576).",'
            b'"status":"INVALID_ARGUMENT"}}]'
        ),
        "overflow",
    ),
    (
        400,
        (
            b'{"error":{"code":400,"message":"API key not valid. Please pass a valid API '
            b'key.","status":"INVALID_ARGUMENT"}}'
        ),
        "authentication",
    ),
    (
        429,
        (
            b'{"error":{"code":429,"message":"You exceeded your current quota, please '
            b'check your plan and billing details.","status":"RESOURCE_EXHAUSTED",'
            b'"details":[{"@type":"RetryInfo","retryDelay":"27s"}]}}'
        ),
        "rate-limit",
    ),
    (
        429,
        (
            b'{"error":{"code":429,"message":"You exceeded your current quota.",'
            b'"status":"RESOURCE_EXHAUSTED",'
            b'"details":[{"quotaId":"RequestsPerDayPerProject"},{"retryDelay":"27s"}]}}'
        ),
        "quota-exceeded",
    ),
    (
        503,
        b'{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}',
        "overload",
    ),
    (
        403,
        b'{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}',
        "authentication",
    ),
)

BEDROCK: Final[tuple[Case, ...]] = (
    (400, b'{"message":"Input is too long for requested model."}', "overflow"),
    (429, b'{"message":"Too many tokens, please wait before trying again."}', "rate-limit"),
    (
        400,
        b'{"__type":"ThrottlingException","message":"Too many requests, please slow down"}',
        "rate-limit",
    ),
    (
        403,
        b'{"message":"The security token included in the request is expired"}',
        "authentication",
    ),
    (503, b'{"message":"Bedrock is unable to process your request."}', "overload"),
    (400, b'{"message":"The provided model identifier is invalid."}', "invalid-request"),
    (408, b'{"message":"Model has timed out in processing the request"}', "provider-internal"),
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


@pytest.mark.parametrize(
    ("status", "body", "reason"), [*OPENAI, *ANTHROPIC, *GEMINI, *BEDROCK, *ELSEWHERE]
)
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
