"""One request to a model, in provider-neutral terms.

Generation Controls (sampling and output), Model Request Options (in a provider's own terms) and
the compatibility body stay separate until the wire protocol encodes them.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import Segment
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Value

ToolChoice = Literal["auto", "none", "required"]

Dialect = Literal["openai", "openai_compatible", "anthropic", "google", "bedrock"]
"""The namespace of the Model Request Options that a wire protocol reads."""


class ToolDefinition(Value):
    name: str
    description: str
    input_schema: JsonObject


class GenerationControls(Value, kw_only=True):
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def merge_over(self, lower: "GenerationControls") -> "GenerationControls":
        """Merge field by field: values set here win over `lower`."""
        chosen: JsonObject = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            unset = value is None or value == ()
            chosen[name] = getattr(lower, name) if unset else value
        return GenerationControls(**chosen)


class AnswerPrefix(Value):
    """The beginning of an answer that broke off, for a model that goes on with it."""

    text: str
    fields: JsonObject
    """Mark the message that holds it, for providers that want a mark."""


class LLMRequest(Value, kw_only=True):
    model: ModelRef
    system: tuple[str, ...]
    segments: tuple[Segment, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice | None = None
    generation: GenerationControls = field(default_factory=GenerationControls)
    options: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Provider namespace -> its Model Request Options."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Request correlation, such as the Session's id."""
    goes_on: bool = False
    """Whether the provider paused in the answer that ends the conversation, and continues it."""
    prefix: AnswerPrefix | None = None
    """What the model has said of this answer already."""
    encoded_history: EncodedHistory | None = None
    """The cached bytes of the same conversation, if its owner keeps them."""
