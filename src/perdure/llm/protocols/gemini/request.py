"""Google Gemini: the request side, for its own API and for Vertex.

`content` makes the contents. The provider requires the user's message first and last, and no answer
with calls directly after another answer.

Invariant: the bytes of a segment never depend on later ones, and unset options are omitted.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from perdure.llm.encoding.wire_protocol import ModelFacts, SegmentPosition, WireProtocol
from perdure.llm.message import Segment
from perdure.llm.protocols.gemini import content, schema, stream
from perdure.llm.request import LLMRequest, ToolChoice, ToolDefinition
from perdure.schema.codec import JsonObject

STOP_SEQUENCES_MAX: Final = 5
SEED_MAX: Final = 2**31 - 1

_CHOICES: Final[Mapping[ToolChoice, str]] = {"auto": "AUTO", "required": "ANY"}
_GENERATION_OPTIONS: Final = (
    "audioTimestamp",
    "imageConfig",
    "mediaResolution",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "speechConfig",
    "thinkingConfig",
)
"""Model Request Options inside `generationConfig`."""

_HEAD_OPTIONS: Final = ("cachedContent", "labels", "safetySettings", "serviceTier")
"""Model Request Options at the top level."""

_BEFORE_AN_ANSWER: Final = "(The conversation begins with an answer.)"
_AFTER_AN_ANSWER: Final = "Go on."


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the contents."""
    options = request.options.get(stream.NAMESPACE, {})
    body: JsonObject = {
        name: options[name] for name in _HEAD_OPTIONS if options.get(name) is not None
    }
    body["generationConfig"] = _generation(request, options)
    if text := "\n\n".join(part for part in request.system if part.strip()):
        body["systemInstruction"] = {"parts": [{"text": text}]}
    if request.tools and request.tool_choice != "none":
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
        if request.tool_choice is not None:
            mode = _CHOICES[request.tool_choice]
            body["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
    return body


def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
    """A placeholder user message, if the conversation would not begin with the user."""
    del facts
    if request.segments and not request.segments[0].is_answer:
        return []
    return [content.user_text(_BEFORE_AN_ANSWER)]


def closing(request: LLMRequest) -> list[JsonObject]:
    """A placeholder user message, if the conversation would end with an answer."""
    if not request.segments or not content.ends_with_answer(request.segments[-1]):
        return []
    return [content.user_text(_AFTER_AN_ANSWER)]


def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    if not segment.is_answer:
        return [content.user_content(segment)]
    return content.answer(segment, signed=content.needs_signature(facts.name))


def adapted(listed: list[JsonObject], position: SegmentPosition) -> list[JsonObject]:
    """The items, with a placeholder user message between two answers."""
    if position.before is None or listed[0]["role"] != "model":
        return listed
    if not content.ends_with_answer(position.before):
        return listed
    return [content.user_text(_AFTER_AN_ANSWER), *listed]


def _tool(tool: ToolDefinition) -> JsonObject:
    declared: JsonObject = {"name": tool.name, "description": tool.description or tool.name}
    parameters = schema.parameters(tool.input_schema)
    return declared if parameters is None else declared | {"parameters": parameters}


def _generation(request: LLMRequest, options: JsonObject) -> JsonObject:
    controls = request.generation
    seed = controls.seed
    named: JsonObject = {name: options.get(name) for name in _GENERATION_OPTIONS} | {
        "maxOutputTokens": controls.max_tokens,
        "temperature": controls.temperature,
        "topP": controls.top_p,
        "topK": controls.top_k,
        "frequencyPenalty": controls.frequency_penalty,
        "presencePenalty": controls.presence_penalty,
        "seed": None if seed is None else seed % (SEED_MAX + 1),
        "stopSequences": [text for text in controls.stop if text][:STOP_SEQUENCES_MAX] or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _path(model: str) -> str:
    """The path of a model. Tuned models and other publishers' have a path as their name."""
    name = model if "/" in model else f"models/{model}"
    return f"/{quote(name)}:streamGenerateContent?alt=sse"


GEMINI: Final = WireProtocol(
    name="gemini",
    path=_path,
    conversation_field="contents",
    head=head,
    opening=opening,
    items=items,
    closing=closing,
    adapted=adapted,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
)
