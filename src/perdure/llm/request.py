"""One request to a model, in provider-neutral terms.

Generation Controls (sampling and output), Model Request Options (what a provider understands by
its own names) and the compatibility body are three domains and stay apart until the wire
protocol encodes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perdure.llm.message import Run
from perdure.schema.codec import JsonObject
from perdure.schema.model import ModelRef

ToolChoice = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    name: str
    description: str
    input_schema: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationControls:
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMRequest:
    model: ModelRef
    system: tuple[str, ...]
    runs: tuple[Run, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice | None = None
    generation: GenerationControls = field(default_factory=GenerationControls)
    options: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Provider namespace -> its Model Request Options."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Request correlation, such as the Session's id."""
