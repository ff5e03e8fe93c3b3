"""OpenAI Chat Completions: the request side. Most compatible and local servers use it too.

`content` makes the messages. The dialect of its provider (llm.encoding.chat_dialect) says which
optional fields a request has, and under which names. For models that take cache marks, the system
message and the ends of the last two requests are marked.
"""

import re
from typing import Final

from perdure.llm.encoding import cache_marks
from perdure.llm.encoding.cache_marks import Marker
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.protocols.openai_chat import stream
from perdure.llm.protocols.openai_chat.content import items
from perdure.llm.protocols.openai_chat.stream import NAMESPACE
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema.codec import JsonObject

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the messages. Unset options are omitted."""
    body: JsonObject = _added(request, facts) | _options(request)
    body |= {"model": facts.name, "stream": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    return facts.dialect.shape(body | _generation(request))


def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
    """One system message, because many servers refuse a second."""
    text = "\n\n".join(part for part in request.system if part)
    if not text:
        return []
    message: JsonObject = {"role": "system", "content": text}
    mark = marker(request, facts)
    return [message if mark is None else mark(message)]


def marker(request: LLMRequest, facts: ModelFacts) -> Marker | None:
    if not facts.dialect.cache_control:
        return None
    control = cache_marks.cache_control(request.options.get(NAMESPACE, {}))
    return lambda message: _marked(message, control)


def closing(request: LLMRequest) -> list[JsonObject]:
    """The beginning of the answer, if the model is to go on with it."""
    if request.prefix is None:
        return []
    return [{"role": "assistant", "content": request.prefix.text, **request.prefix.fields}]


def _marked(message: JsonObject, control: JsonObject) -> JsonObject:
    """The message with a mark on its last text, which must be a content part for that."""
    match message["content"]:
        case "" | None:
            return message
        case str() as text:
            parts: list[JsonObject] = [{"type": "text", "text": text}]
        case listed:
            parts = list(listed)
    texts = [index for index, part in enumerate(parts) if part["type"] == "text"]
    at = texts[-1] if texts else len(parts) - 1
    parts[at] = parts[at] | control
    return message | {"content": parts}


def _tool(tool: ToolDefinition) -> JsonObject:
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def _generation(request: LLMRequest) -> JsonObject:
    controls = request.generation
    named: JsonObject = {
        "max_tokens": controls.max_tokens,
        "temperature": controls.temperature,
        "top_p": controls.top_p,
        "top_k": controls.top_k,
        "frequency_penalty": controls.frequency_penalty,
        "presence_penalty": controls.presence_penalty,
        "seed": controls.seed,
        "stop": list(controls.stop) or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _added(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The optional fields that no configuration asks for."""
    fields: JsonObject = {"stream_options": {"include_usage": True}}
    cache_key = request.options.get("openai", {}).get("promptCacheKey")
    if cache_key is not None:
        fields["prompt_cache_key"] = cache_key
    return {name: value for name, value in fields.items() if name in facts.dialect.accepts}


def _options(request: LLMRequest) -> JsonObject:
    """Model Request Options by their wire names: `reasoningEffort` is `reasoning_effort`."""
    options = request.options.get(NAMESPACE, {})
    body: JsonObject = {
        _CAPITAL.sub("_", name).lower(): options[name]
        for name in options
        if name != cache_marks.OPTION
    }
    # The segments write the conversation; an option must not add a second one.
    body.pop("messages", None)
    return body


OPENAI_CHAT: Final = WireProtocol(
    name="openai-chat",
    path=lambda model: "/chat/completions",
    conversation_field="messages",
    head=head,
    opening=opening,
    items=items,
    closing=closing,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
    marker=marker,
    recover=stream.recover,
)
