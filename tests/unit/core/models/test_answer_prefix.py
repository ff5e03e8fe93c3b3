"""Which models go on with the beginning of an answer, and how they are sent it."""

import pytest

from perdure.core.models import answer_prefix
from perdure.core.models.transport import Api
from perdure.schema.codec import JsonObject


@pytest.mark.parametrize(
    ("provider", "package", "model", "form"),
    [
        ("anthropic", "@ai-sdk/anthropic", "claude-sonnet-4-5", {}),
        ("anthropic", "@ai-sdk/anthropic", "claude-sonnet-4-5-20250929", {}),
        ("anthropic", "@ai-sdk/anthropic", "claude-opus-4-20250514", {}),
        ("anthropic", "@ai-sdk/anthropic", "claude-3-5-haiku-latest", {}),
        ("anthropic", "@ai-sdk/anthropic", "claude-opus-4-6", None),
        ("anthropic", "@ai-sdk/anthropic", "claude-opus-4-8", None),
        ("anthropic", "@ai-sdk/anthropic", "claude-sonnet-5", None),
        ("groq", "@ai-sdk/groq", "llama-3.3-70b-versatile", {}),
        ("mistral", "@ai-sdk/mistral", "mistral-large-latest", {"prefix": True}),
        ("moonshotai", "@ai-sdk/openai-compatible", "kimi-k2", {"partial": True}),
        ("alibaba", "@ai-sdk/openai-compatible", "qwen3-max", {"partial": True}),
        ("openrouter", "@openrouter/ai-sdk-provider", "qwen/qwen3-coder", {}),
        ("openrouter", "@openrouter/ai-sdk-provider", "anthropic/claude-opus-4.8", None),
        ("openai", "@ai-sdk/openai", "gpt-5", None),
        ("mine", "@ai-sdk/openai-compatible", "anything", None),
        ("mine", None, "anything", None),
    ],
)
def test_only_models_that_document_it_go_on(
    provider: str, package: str | None, model: str, form: JsonObject | None
) -> None:
    api = Api(type="aisdk", package=package)
    assert answer_prefix.prefix_form(provider, api, model) == form
