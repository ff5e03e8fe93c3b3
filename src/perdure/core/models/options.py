"""What is added to the requests of a model, its domains apart: what was configured, by whom ever.

Generation Controls, Model Request Options and fields for the provider alone never mix, and the key
is none of them. core.models.options makes these values; core.models.catalog lays them over each
other.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import field

from perdure.core.models import tool_call_mode
from perdure.core.settings.settings import overlay
from perdure.llm.request import Dialect, GenerationControls
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential


class Overrides(Confidential, kw_only=True):
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    generation: GenerationControls = field(default_factory=GenerationControls)
    options: JsonObject = field(default_factory=dict[str, object])
    """Model Request Options by their own names, before any protocol is chosen."""
    body: JsonObject = field(default_factory=dict[str, object])
    """Compatibility fields, sent as they are."""
    api_key: str | None = None

    def over(self, lower: "Overrides") -> "Overrides":
        return Overrides(
            headers={**lower.headers, **self.headers},
            generation=self.generation.over(lower.generation),
            options=overlay(lower.options, self.options),
            body=overlay(lower.body, self.body),
            api_key=self.api_key or lower.api_key,
        )


NO_OVERRIDES: Final = Overrides()


_NOT_SENT: Final = frozenset({"apiKey", "baseURL"})
_UNDERSCORE: Final = re.compile(r"_([a-z])")

_CONTROLS: Final[Mapping[str, str]] = {
    "frequencyPenalty": "frequency_penalty",
    "maxCompletionTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "presencePenalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop",
    "stopSequences": "stop",
    "temperature": "temperature",
    "topK": "top_k",
    "topP": "top_p",
}
"""What Generation Controls are called elsewhere -> ours."""

_OPENAI: Final = frozenset(
    {
        "include",
        "instructions",
        "maxToolCalls",
        "metadata",
        "parallelToolCalls",
        "promptCacheKey",
        "promptCacheRetention",
        "reasoningEffort",
        "reasoningSummary",
        "safetyIdentifier",
        "serviceTier",
        "store",
        "textVerbosity",
        "truncation",
        "user",
    }
)
UNDERSTOOD: Final[Mapping[Dialect, frozenset[str]]] = {
    "openai": _OPENAI,
    "openai_compatible": _OPENAI - {"instructions"} | {"thinking", tool_call_mode.OPTION},
    "anthropic": frozenset(
        {"effort", "metadata", "reasoningEffort", "serviceTier", "taskBudget", "thinking"}
    ),
    "google": frozenset(
        {
            "cachedContent",
            "imageConfig",
            "mediaResolution",
            "responseModalities",
            "safetySettings",
            "serviceTier",
            "speechConfig",
            "thinkingConfig",
        }
    ),
    "bedrock": frozenset(
        {
            "additionalModelRequestFields",
            "guardrailConfig",
            "performanceConfig",
            "reasoningConfig",
            "serviceTier",
        }
    ),
}
"""Model Request Options that the wire protocols of a dialect read."""

_OPTIONS: Final = frozenset[str]().union(*UNDERSTOOD.values())
_OUTPUT_CONFIG: Final[Mapping[str, str]] = {
    "reasoningEffort": "effort",
    "effort": "effort",
    "taskBudget": "task_budget",
}
"""Options that Anthropic takes below `output_config`. The later of two names wins."""


def read_overrides(headers: Mapping[str, str], body: JsonObject) -> Overrides:
    """What `headers` and a configured `body` add to a request, each domain apart."""
    controls: JsonObject = {}
    options: JsonObject = {}
    rest: JsonObject = {}
    for key, value in body.items():
        name = _UNDERSCORE.sub(lambda found: found[1].upper(), key)
        if name in _CONTROLS:
            controls[_CONTROLS[name]] = [value] if _is_one_stop(name, value) else value
        elif name in _OPTIONS:
            options[name] = value
        elif key not in _NOT_SENT:
            rest[key] = value
    key = body.get("apiKey")
    return Overrides(
        headers=headers,
        generation=_generation(controls),
        options=options,
        body=rest,
        api_key=key if isinstance(key, str) and key else None,
    )


def for_dialect(options: JsonObject, dialect: Dialect) -> dict[str, JsonObject]:
    """The options that a dialect understands, in its namespace and by the names it reads."""
    understood = UNDERSTOOD[dialect]
    kept = {name: value for name, value in options.items() if name in understood}
    if dialect == "anthropic":
        kept = _as_anthropic(kept)
    elif dialect == "openai_compatible":
        kept.pop(tool_call_mode.OPTION, None)
        if "textVerbosity" in kept:
            kept["verbosity"] = kept.pop("textVerbosity")
    return {dialect: kept} if kept else {}


def _as_anthropic(options: JsonObject) -> JsonObject:
    """How hard to think stands among what is asked of the output."""
    asked = {_OUTPUT_CONFIG[name]: options[name] for name in _OUTPUT_CONFIG if name in options}
    rest = {name: value for name, value in options.items() if name not in _OUTPUT_CONFIG}
    return {**rest, "outputConfig": asked} if asked else rest


def _is_one_stop(name: str, value: JsonValue) -> bool:
    return _CONTROLS[name] == "stop" and isinstance(value, str)


def _generation(controls: JsonObject) -> GenerationControls:
    try:
        return codec.convert(GenerationControls, controls)
    except msgspec.ValidationError:
        # One bad value must not take the good ones with it; they are few.
        sound = {key: value for key, value in controls.items() if _sound(key, value)}
        return codec.convert(GenerationControls, sound)


def _sound(control: str, value: JsonValue) -> bool:
    try:
        codec.convert(GenerationControls, {control: value})
    except msgspec.ValidationError:
        return False
    return True
