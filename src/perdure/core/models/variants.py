"""Variants of a reasoning model: one per supported amount of thinking.

Derived from facts about the model, so that they need no configuration; configured variants are
merged over them (core.models.catalog). Bodies are Model Request Options, named as in
core.models.options.

Invariant: no variant asks for something that its dialect is known to refuse.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from perdure.core.config_file.entries import VariantEntry
from perdure.llm.request import Dialect
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS: Final[Mapping[str, int]] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_000,
    "xhigh": 24_000,
    "max": 31_999,
}
"""Thinking budgets in tokens, for providers that want a number."""
_BUDGETED: Final = ("high", "max")
_SWITCHED_FAMILIES: Final = ("deepseek", "glm", "kimi")
"""Model families whose servers switch thinking with a `thinking` field."""


class Thinking(Value, kw_only=True):
    """The known thinking controls of a model."""

    efforts: tuple[str, ...] = ()
    budget: bool = False
    budget_min: int = 0
    budget_max: int = 0
    """0 is unknown."""
    switch: bool = False
    output_limit: int = 0
    family: str = ""

    def tokens(self, effort: str) -> int:
        """The budget for an effort, within the limits of the model and its output."""
        bounds = (self.budget_max, self.output_limit - 1)
        most = min((bound for bound in bounds if bound > 0), default=_BUDGETS[effort])
        return max(self.budget_min, min(_BUDGETS[effort], most))


def variants(dialect: Dialect, thinking: Thinking) -> tuple[VariantEntry, ...]:
    """The variants in order of increasing effort."""
    known = dict(_OF_DIALECT[dialect](thinking))
    return tuple(VariantEntry(id=name, body=known[name]) for name in EFFORTS if name in known)


_Named = Iterator[tuple[str, JsonObject]]


def _openai(thinking: Thinking) -> _Named:
    for effort in thinking.efforts:
        if effort == "none":
            yield effort, {"reasoningEffort": effort}
        elif effort != "max":  # not part of the Responses protocol
            yield effort, {"reasoningEffort": effort, "reasoningSummary": "auto"}


def _compatible(thinking: Thinking) -> _Named:
    for effort in thinking.efforts:
        yield effort, {"reasoningEffort": effort}
    if thinking.switch and not thinking.efforts and thinking.family.startswith(_SWITCHED_FAMILIES):
        yield "none", {"thinking": {"type": "disabled"}}
        yield "high", {"thinking": {"type": "enabled"}}


def _anthropic(thinking: Thinking) -> _Named:
    for effort in thinking.efforts:
        if effort == "none":
            continue
        how: JsonObject = {"type": "adaptive"}
        if thinking.budget:
            how = {"type": "enabled", "budgetTokens": thinking.tokens(effort)}
        yield effort, {"effort": effort, "thinking": how}
    if thinking.budget and not thinking.efforts:
        for effort in _BUDGETED:
            yield effort, {"thinking": {"type": "enabled", "budgetTokens": thinking.tokens(effort)}}


def _google(thinking: Thinking) -> _Named:
    for effort in thinking.efforts:
        yield effort, {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": effort}}
    if not thinking.budget or thinking.efforts:
        return
    if thinking.switch:
        yield "none", {"thinkingConfig": {"thinkingBudget": 0}}
    for effort in _BUDGETED:
        budget = thinking.tokens(effort)
        yield effort, {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": budget}}


def _bedrock(thinking: Thinking) -> _Named:
    """The options of Bedrock, which depend on the model's vendor."""
    for effort in thinking.efforts or (_BUDGETED if thinking.budget else ()):
        if effort == "none":
            continue
        if thinking.family.startswith("nova"):
            yield effort, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
        elif not thinking.family.startswith("claude"):
            yield effort, {"additionalModelRequestFields": {"reasoning_effort": effort}}
        elif thinking.budget:
            budget = thinking.tokens(effort)
            yield effort, {"reasoningConfig": {"type": "enabled", "budgetTokens": budget}}
        else:
            fields: JsonObject = {"output_config": {"effort": effort}}
            how: JsonObject = {"type": "adaptive"}
            yield effort, {"reasoningConfig": how, "additionalModelRequestFields": fields}


_OF_DIALECT: Final = {
    "openai": _openai,
    "openai_compatible": _compatible,
    "anthropic": _anthropic,
    "google": _google,
    "bedrock": _bedrock,
}
