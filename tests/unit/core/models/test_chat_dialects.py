"""Which dialect a Chat Completions provider is spoken to in."""

import pytest

from perdure.core.config_file.entries import DialectEntry
from perdure.core.models.chat_dialects import KNOWN, choose_dialect
from perdure.llm.encoding.chat_dialect import DEFAULT_DIALECT, ChatDialect
from perdure.schema import codec
from perdure.schema.codec import JsonObject

GROQ = choose_dialect("m", url=None, names=("groq",))


def configured(*entries: JsonObject, names: tuple[str, ...] = ("acme",)) -> ChatDialect:
    typed = (codec.convert(DialectEntry, entry) for entry in entries)
    return choose_dialect("m", url=None, names=names, entries=typed)


def test_an_unknown_provider_gets_the_smallest_set_of_fields() -> None:
    dialect = choose_dialect("m", url="https://llm.example/v1", names=("acme", "@ai-sdk/x"))
    assert dialect == DEFAULT_DIALECT
    assert dialect.accepts == {"stream_options"}


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("https://api.groq.com/openai/v1", ("mine", "@ai-sdk/openai-compatible")),
        ("https://API.GROQ.com:443/openai/v1", ("mine",)),
        ("http://127.0.0.1:9/v1", ("groq", "@ai-sdk/openai-compatible")),
        ("http://127.0.0.1:9/v1", ("mine", "@ai-sdk/groq")),
        ("https://[bad", ("groq",)),
        (None, ("groq",)),
    ],
)
def test_a_provider_is_known_by_its_host_or_else_by_its_name(
    url: str | None, names: tuple[str, ...]
) -> None:
    assert choose_dialect("m", url=url, names=names) == GROQ


def test_the_host_decides_over_the_name() -> None:
    dialect = choose_dialect("m", url="https://api.mistral.ai/v1", names=("groq",))
    assert dialect.short_call_ids


@pytest.mark.parametrize("host", ["api.groq.com.evil.example", "notapi.groq.com.example"])
def test_a_host_that_only_resembles_a_known_one_is_not_known(host: str) -> None:
    assert choose_dialect("m", url=f"https://{host}/v1", names=()) == DEFAULT_DIALECT


def test_a_family_differs_from_its_provider() -> None:
    def of(model: str) -> ChatDialect:
        return choose_dialect(model, url=None, names=("openrouter",))

    assert of("anthropic/claude-opus-4.5").cache_control
    assert not of("openai/gpt-5").cache_control
    grok = choose_dialect("grok-4-fast-reasoning", url=None, names=("xai",))
    assert "stop" in grok.refuses
    assert (
        "stop" not in choose_dialect("grok-4-fast-non-reasoning", url=None, names=("xai",)).refuses
    )


def test_a_configuration_switches_fields_on_and_off_and_null_gives_the_default() -> None:
    dialect = configured({"fields": {"prompt_cache_key": True, "stream_options": False}})
    assert dialect.accepts == {"prompt_cache_key"}
    assert dialect.refuses == {"stream_options"}
    assert configured(
        {"fields": {"stream_options": False}}, {"fields": {"stream_options": None}}
    ) == (DEFAULT_DIALECT)
    groq = configured({"fields": {"top_k": None, "prompt_cache_key": True}}, names=("groq",))
    assert "top_k" not in groq.refuses
    assert "prompt_cache_key" in groq.accepts - groq.refuses


def test_a_configuration_sets_each_form_and_null_gives_the_default() -> None:
    forms: JsonObject = {
        "reasoning": "reasoning",
        "empty_reasoning": True,
        "documents": True,
        "cache_control": True,
        "short_call_ids": True,
    }
    dialect = configured(forms)
    assert {name: getattr(dialect, name) for name in forms} == forms
    assert configured(forms, dict.fromkeys(forms)) == DEFAULT_DIALECT


def test_no_field_is_both_added_and_refused_and_no_host_is_listed_twice() -> None:
    for known in KNOWN:
        assert not known.dialect.accepts & known.dialect.refuses
    listed = [host for known in KNOWN for host in (*known.hosts, *known.ids)]
    assert len(listed) == len({*listed})
