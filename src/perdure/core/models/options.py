"""Model options: what the configuration adds to the requests of a model.

Generation Controls, Model Request Options and plain body fields are kept apart, and so is the key.
core.models.catalog merges these values.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import field, structs

from perdure.core.models import tool_call_mode
from perdure.core.settings.settings import overlay
from perdure.lazy_pattern import lazy_pattern
from perdure.llm.encoding import cache_marks
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
    """Other body fields, sent unchanged."""
    removed: frozenset[str] = frozenset()
    """Names of fields that are not sent, whatever else asks for them."""
    api_key: str | None = None

    def merge_over(self, lower: "Overrides") -> "Overrides":
        return Overrides(
            headers={**lower.headers, **self.headers},
            generation=self.generation.merge_over(_without(lower.generation, self.removed)),
            options=overlay(_without_names(lower.options, self.removed), self.options),
            body=overlay(_without_names(lower.body, self.removed), self.body),
            removed=(lower.removed - self._names()) | self.removed,
            api_key=self.api_key or lower.api_key,
        )

    def _names(self) -> frozenset[str]:
        """The names of the fields that are set here."""
        controls = {
            name
            for name, control in _CONTROLS.items()
            if getattr(self.generation, control) not in (None, ())
        }
        return frozenset({*map(field_name, (*self.options, *self.body)), *controls})


NO_OVERRIDES: Final = Overrides()


_NOT_SENT: Final = frozenset({"apiKey", "baseURL"})
_UNDERSCORE: Final = lazy_pattern(r"_([a-z])")

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
"""Other names of Generation Controls -> the field here."""

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
    "openai_compatible": (
        _OPENAI - {"instructions"} | {cache_marks.OPTION, "thinking", tool_call_mode.OPTION}
    ),
    "anthropic": frozenset(
        {
            cache_marks.OPTION,
            "effort",
            "metadata",
            "reasoningEffort",
            "serviceTier",
            "taskBudget",
            "thinking",
        }
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
            cache_marks.OPTION,
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
"""Options that Anthropic expects inside `output_config`. The later of two names wins."""


def read_overrides(headers: Mapping[str, str], body: JsonObject) -> Overrides:
    """Sort configured `headers` and `body` fields into the kinds of overrides."""
    controls: JsonObject = {}
    options: JsonObject = {}
    rest: JsonObject = {}
    removed: set[str] = set()
    for key, value in body.items():
        name = field_name(key)
        if value is None:
            removed |= _aliases(name)
        elif name in _CONTROLS:
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
        removed=frozenset(removed),
        api_key=key if isinstance(key, str) and key else None,
    )


def field_name(key: str) -> str:
    """The name of a body field, which configurations write in two ways: `topP` or `top_p`."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), key)


def for_dialect(options: JsonObject, dialect: Dialect) -> dict[str, JsonObject]:
    """The options that a dialect understands, in its namespace and with its names."""
    understood = UNDERSTOOD[dialect]
    kept = {name: value for name, value in options.items() if name in understood}
    if dialect == "anthropic":
        kept = _as_anthropic(kept)
    elif dialect == "openai_compatible":
        kept.pop(tool_call_mode.OPTION, None)
        if "textVerbosity" in kept:
            kept["verbosity"] = kept.pop("textVerbosity")
    return {dialect: kept} if kept else {}


def _aliases(name: str) -> set[str]:
    """All names of a Generation Control, or the name of another field."""
    control = _CONTROLS.get(name)
    return {other for other in _CONTROLS if _CONTROLS[other] == control} if control else {name}


def _without_names(fields: JsonObject, removed: frozenset[str]) -> JsonObject:
    return {name: value for name, value in fields.items() if field_name(name) not in removed}


def _without(controls: GenerationControls, removed: frozenset[str]) -> GenerationControls:
    unset = GenerationControls()
    gone = {_CONTROLS[name] for name in removed if name in _CONTROLS}
    return structs.replace(controls, **{name: getattr(unset, name) for name in gone})


def _as_anthropic(options: JsonObject) -> JsonObject:
    """Move effort and budget options into `outputConfig`."""
    asked = {_OUTPUT_CONFIG[name]: options[name] for name in _OUTPUT_CONFIG if name in options}
    rest = {name: value for name, value in options.items() if name not in _OUTPUT_CONFIG}
    return {**rest, "outputConfig": asked} if asked else rest


def _is_one_stop(name: str, value: JsonValue) -> bool:
    return _CONTROLS[name] == "stop" and isinstance(value, str)


def _generation(controls: JsonObject) -> GenerationControls:
    try:
        return codec.convert(GenerationControls, controls)
    except msgspec.ValidationError:
        # Drop only the invalid values.
        sound = {key: value for key, value in controls.items() if _sound(key, value)}
        return codec.convert(GenerationControls, sound)


def _sound(control: str, value: JsonValue) -> bool:
    try:
        codec.convert(GenerationControls, {control: value})
    except msgspec.ValidationError:
        return False
    return True
