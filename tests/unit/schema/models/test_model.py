"""Models are named by one string in programs, configuration and options."""

import pytest
from msgspec import UNSET

from perdure.schema.models.model import ModelRef


@pytest.mark.parametrize(
    ("name", "provider", "model", "variant"),
    [
        ("demo/demo", "demo", "demo", UNSET),
        ("openrouter/anthropic/claude-opus", "openrouter", "anthropic/claude-opus", UNSET),
        ("anthropic/claude-opus-4-5#high", "anthropic", "claude-opus-4-5", "high"),
        ("ollama/llama3:8b@q4", "ollama", "llama3:8b@q4", UNSET),
    ],
)
def test_a_name_is_read_as_provider_model_and_variant(
    name: str, provider: str, model: str, variant: object
) -> None:
    found = ModelRef.parse(name)
    assert (found.provider_id, found.id, found.variant) == (provider, model, variant)


@pytest.mark.parametrize("name", ["", "demo", "/demo", "demo/", "demo/#high", "demo/demo#", "#x"])
def test_a_bad_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValueError, match=r"is not the name of a model; write provider/model or"):
        ModelRef.parse(name)
