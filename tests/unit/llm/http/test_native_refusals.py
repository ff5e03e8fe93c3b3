"""Refusals of parts that only their maker can check, as providers really say it."""

from typing import Final

import pytest

from perdure.llm.error import LLMError
from perdure.llm.http import errors


def classified(status: int, body: bytes) -> LLMError:
    return errors.from_response(status=status, headers={}, body=body, secrets=(), now_millis=0)


NATIVE: Final = (
    # Anthropic, and the same behind Bedrock and a gateway.
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":'
            b'"messages.1.content.0: Invalid `signature` in `thinking` block"}}'
        ),
    ),
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":"messages.3.content.1:'
            b" `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            b'modified. These blocks must remain as they were in the original response."}}'
        ),
    ),
    (
        400,
        (
            b'{"type":"error","error":{"type":"invalid_request_error","message":'
            b'"messages.1.content.0: Invalid `data` in `redacted_thinking` block"}}'
        ),
    ),
    (
        400,
        (
            b'{"message":"The model returned the following errors: messages.1.content.0.thinking.'
            b'signature: Field required"}'
        ),
    ),
    # OpenAI.
    (
        400,
        (
            b'{"error":{"message":"The encrypted content gAAA could not be verified. Reason: '
            b'Encrypted content could not be decrypted or parsed.","code":'
            b'"invalid_encrypted_content"}}'
        ),
    ),
    (
        404,
        (
            b'{"error":{"message":"Item with id \'rs_68a\' not found. Items are not persisted when '
            b'`store` is set to false.","type":"invalid_request_error","param":"input"}}'
        ),
    ),
    (
        400,
        (
            b'{"error":{"message":"Item \'rs_68a\' of type \'reasoning\' was provided without its '
            b'required following item.","type":"invalid_request_error","param":"input"}}'
        ),
    ),
    (
        400,
        (
            b'{"error":{"message":"Invalid \'input[2].id\': \'x_1\'. Expected an ID that begins '
            b'with \'rs\'.","type":"invalid_request_error"}}'
        ),
    ),
    # Google.
    (
        400,
        b'{"error":{"code":400,"message":"Thought signature is not valid"}}',
    ),
    (
        400,
        b'{"error":{"code":400,"message":"Corrupted thought signature."}}',
    ),
    (
        400,
        (
            b'{"error":{"code":400,"message":"Function call is missing a thought_signature in '
            b'functionCall parts.","status":"INVALID_ARGUMENT"}}'
        ),
    ),
    # Groq, Cerebras, Mistral.
    (
        400,
        (
            b'{"error":{"message":"\'messages.1\' : for \'role:assistant\' the following must be '
            b"satisfied[('messages.1' : property 'reasoning_content' is unsupported)]\",\"type\":"
            b'"invalid_request_error"}}'
        ),
    ),
    (
        400,
        (
            b'{"message":"messages.2.assistant.reasoning_content: property \'messages.2.assistant.'
            b'reasoning_content\' is unsupported","code":"wrong_api_format"}'
        ),
    ),
    (
        422,
        (
            b'{"detail":[{"type":"extra_forbidden","loc":["body","messages",3,"assistant",'
            b'"reasoning_content"],"msg":"Extra inputs are not permitted","input":"x"}]}'
        ),
    ),
)
NOT_NATIVE: Final = (
    (400, b'{"error":{"message":"reasoning_effort is not supported with this model"}}'),
    (400, b'{"error":{"message":"Unsupported parameter: prompt_cache_key"}}'),
    (
        403,
        b'{"message":"The request signature we calculated does not match the one you provided."}',
    ),
    (404, b'{"error":{"message":"The model `x` was not found"}}'),
)


@pytest.mark.parametrize(("status", "body"), NATIVE)
def test_a_refused_native_part_is_recognised(status: int, body: bytes) -> None:
    assert classified(status, body).reason == "native-part"


@pytest.mark.parametrize(("status", "body"), NOT_NATIVE)
def test_other_refusals_are_not_about_native_parts(status: int, body: bytes) -> None:
    assert classified(status, body).reason != "native-part"
