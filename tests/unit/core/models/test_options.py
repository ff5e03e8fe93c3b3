"""Options of a model: three domains, taken apart once, and each protocol's own names."""

from collections.abc import Mapping

import pytest

from perdure.core.models import options as model_options
from perdure.core.models.options import Overrides
from perdure.core.models.transport import PACKAGES
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.request import Dialect, GenerationControls, LLMRequest
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.model import ModelRef
from tests.requirements import requirement


@requirement("S93")
@pytest.mark.parametrize(
    ("name", "value", "control"),
    [
        ("temperature", 0.5, GenerationControls(temperature=0.5)),
        ("topP", 0.9, GenerationControls(top_p=0.9)),
        ("top_p", 0.9, GenerationControls(top_p=0.9)),
        ("topK", 40, GenerationControls(top_k=40)),
        ("top_k", 40, GenerationControls(top_k=40)),
        ("maxTokens", 7, GenerationControls(max_tokens=7)),
        ("max_tokens", 7, GenerationControls(max_tokens=7)),
        ("maxOutputTokens", 7, GenerationControls(max_tokens=7)),
        ("max_output_tokens", 7, GenerationControls(max_tokens=7)),
        ("max_completion_tokens", 7, GenerationControls(max_tokens=7)),
        ("frequencyPenalty", 1, GenerationControls(frequency_penalty=1)),
        ("presence_penalty", 1, GenerationControls(presence_penalty=1)),
        ("seed", 3, GenerationControls(seed=3)),
        ("stop", ["a", "b"], GenerationControls(stop=("a", "b"))),
        ("stop", "a", GenerationControls(stop=("a",))),
        ("stopSequences", ["a"], GenerationControls(stop=("a",))),
    ],
)
def test_generation_controls_are_known_by_all_their_names(
    name: str, value: JsonValue, control: GenerationControls
) -> None:
    assert model_options.read_overrides({}, {name: value}) == Overrides(generation=control)


@requirement("S18", "S93")
def test_each_domain_goes_its_own_way() -> None:
    found = model_options.read_overrides(
        {"x-team": "a"},
        {
            "apiKey": "k",
            "baseURL": "u",
            "temperature": 0.5,
            "max_tokens": "many",
            "reasoning_effort": "low",
            "serviceTier": "flex",
            "enable_thinking": True,
            "reasoning": {"effort": "high"},
        },
    )
    assert found == Overrides(
        headers={"x-team": "a"},
        generation=GenerationControls(temperature=0.5),
        options={"reasoningEffort": "low", "serviceTier": "flex"},
        body={"enable_thinking": True, "reasoning": {"effort": "high"}},
        api_key="k",
    )


@requirement("S17")
def test_what_lies_over_wins_field_by_field_in_each_domain() -> None:
    lower = model_options.read_overrides(
        {"a": "1", "b": "1"},
        {
            "apiKey": "lower",
            "temperature": 0.1,
            "topP": 0.5,
            "thinking": {"type": "enabled", "budgetTokens": 2048},
            "extra": {"kept": 1, "changed": 1},
        },
    )
    upper = model_options.read_overrides(
        {"b": "2"},
        {"temperature": 0.9, "thinking": {"budgetTokens": 4096}, "extra": {"changed": 2}},
    )
    assert upper.merge_over(lower) == Overrides(
        headers={"a": "1", "b": "2"},
        generation=GenerationControls(temperature=0.9, top_p=0.5),
        options={"thinking": {"type": "enabled", "budgetTokens": 4096}},
        body={"extra": {"kept": 1, "changed": 2}},
        api_key="lower",
    )


def test_null_removes_what_is_below_and_what_the_program_adds() -> None:
    lower = model_options.read_overrides(
        {}, {"max_tokens": 7, "topP": 0.5, "thinking": {"type": "enabled"}, "extra_body": 1}
    )
    upper = model_options.read_overrides(
        {}, {"maxOutputTokens": None, "thinking": None, "extraBody": None, "stream_options": None}
    )
    merged = upper.merge_over(lower)
    assert merged.generation == GenerationControls(top_p=0.5)
    assert (merged.options, merged.body) == ({}, {})
    assert {"maxTokens", "thinking", "extraBody", "streamOptions"} <= merged.removed


def test_what_is_set_above_is_sent_although_it_was_removed_below() -> None:
    lower = model_options.read_overrides(
        {}, {"max_tokens": None, "stream_options": None, "x": None}
    )
    upper = model_options.read_overrides({}, {"maxTokens": 7, "streamOptions": {}})
    merged = upper.merge_over(lower)
    assert merged.removed == {"x"}
    assert merged.generation == GenerationControls(max_tokens=7)


def head(protocol: WireProtocol, dialect: Dialect, options: JsonObject) -> JsonObject:
    request = LLMRequest(
        model=ModelRef(id="m", provider_id="p"),
        system=(),
        segments=split_segments((LLMMessage("user", (TextPart("hello"),)),)),
        options=model_options.for_dialect(
            model_options.read_overrides({}, options).options, dialect
        ),
    )
    return protocol.head(request, ModelFacts(name="m", output_limit=64_000))


EVERYTHING: JsonObject = {
    "reasoningEffort": "high",
    "reasoningSummary": "auto",
    "textVerbosity": "low",
    "serviceTier": "flex",
    "thinking": {"type": "enabled", "budgetTokens": 2048},
    "taskBudget": {"type": "tokens", "total": 20_000},
    "thinkingConfig": {"thinkingBudget": 1},
    "reasoningConfig": {"type": "enabled"},
}


@requirement("S92", "S93")
def test_openai_gets_the_options_it_has_by_its_names() -> None:
    body = head(OPENAI_RESPONSES, "openai", EVERYTHING)
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["text"] == {"verbosity": "low"}
    assert body["service_tier"] == "flex"
    assert not {"thinking", "thinkingConfig", "reasoningConfig", "task_budget"} & body.keys()


@requirement("S92", "S93")
def test_anthropic_gets_the_options_it_has_by_its_names() -> None:
    body = head(ANTHROPIC_MESSAGES, "anthropic", EVERYTHING)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert body["output_config"] == {
        "effort": "high",
        "task_budget": {"type": "tokens", "total": 20_000},
    }
    assert body["service_tier"] == "flex"
    assert body.keys() == {
        "max_tokens", "model", "output_config", "service_tier", "stream", "thinking",
    }  # fmt: skip


@requirement("S92", "S93")
def test_a_compatible_server_gets_the_options_by_the_usual_names() -> None:
    body = head(OPENAI_CHAT, "openai_compatible", EVERYTHING)
    assert (body["reasoning_effort"], body["verbosity"]) == ("high", "low")
    assert body["thinking"] == {"type": "enabled", "budgetTokens": 2048}
    assert not {"thinking_config", "reasoning_config", "text_verbosity"} & body.keys()


def test_the_effort_of_anthropic_itself_wins_over_the_general_one() -> None:
    options = {"effort": "max", "reasoningEffort": "low"}
    assert model_options.for_dialect(options, "anthropic") == {
        "anthropic": {"outputConfig": {"effort": "max"}}
    }


def test_no_options_make_no_namespace() -> None:
    assert model_options.for_dialect({"thinkingConfig": {}}, "openai") == {}


DIALECTS: Mapping[str, Dialect] = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "gemini": "google",
    "openai_chat": "openai_compatible",
    "openai_responses": "openai",
}
"""Package of a wire protocol -> the namespace of the options that it reads."""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_options_of_a_package_go_where_its_protocol_reads_them(package: str) -> None:
    wire = PACKAGES[package]
    name = wire.protocol.partition(":")[0].split(".")[-2]
    assert wire.dialect == DIALECTS[name]
