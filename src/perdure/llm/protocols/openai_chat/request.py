"""OpenAI Chat Completions: the request side. Most compatible and local servers use it too.

A system message inside the conversation becomes wrapped user text. Calls that another provider
executed cannot be encoded here and are left out with their results.

Invariant: a segment's items depend on that segment alone, and no attachment makes a request
invalid.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import field

from perdure.llm.encoding import attachment, shared
from perdure.llm.encoding.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.protocols.openai_chat import stream
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

_OPTIONS_NAMESPACE: Final = "openai_compatible"
_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the messages. Unset options are omitted."""
    body: JsonObject = _options(request)
    body |= {"model": facts.name, "stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    return body | _generation(request)


def opening(request: LLMRequest) -> list[JsonObject]:
    """One system message, because many servers refuse a second."""
    text = "\n\n".join(part for part in request.system if part)
    return [{"role": "system", "content": text}] if text else []


def closing(request: LLMRequest) -> list[JsonObject]:
    """The beginning of the answer, if the model is to go on with it."""
    if request.prefix is None:
        return []
    return [{"role": "assistant", "content": request.prefix.text, **request.prefix.fields}]


def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    """The messages of a segment, in order; images of tool results follow in one user message."""
    del facts
    messages: list[JsonObject] = []
    user: _UserContent | None = None
    result_images: list[str] = []
    for message in segment.messages:
        if message.role == "assistant":
            messages.append(_assistant(message))
        elif message.role == "tool":
            messages += _tool_results(message, result_images)
        elif message.role == "system" and user is not None:
            user.texts.append(shared.system_update(message))
            messages[-1] = user.item()
        else:
            user = _user(message)
            messages.append(user.item())
    if result_images:
        messages.append(_UserContent(["Images from the tool results above:"], result_images).item())
    return messages


class _UserContent(State):
    texts: list[str] = field(default_factory=list[str])
    images: list[str] = field(default_factory=list[str])

    def item(self) -> JsonObject:
        # A plain string if possible: some local servers do not support content parts.
        text = "\n\n".join(text for text in self.texts if text)
        if not self.images:
            return {"role": "user", "content": text}
        parts: list[JsonObject] = [{"type": "text", "text": text}] if text else []
        parts += ({"type": "image_url", "image_url": {"url": url}} for url in self.images)
        return {"role": "user", "content": parts}


def _user(message: LLMMessage) -> _UserContent:
    if message.role == "system":
        return _UserContent([shared.system_update(message)])
    content = _UserContent()
    for part in message.user_parts():
        if isinstance(part, TextPart):
            content.texts.append(part.text)
        else:
            _attach(part, content.texts, content.images)
    return content


def _attach(media: MediaPart, texts: list[str], images: list[str]) -> None:
    match attachment.classify(media):
        case ImageAttachment(url=url):
            images.append(url)
        case TextAttachment(text=text):
            texts.append(text)
        case OmittedAttachment(note=note):
            texts.append(note)


def _assistant(message: LLMMessage) -> JsonObject:
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {"name": part.name, "arguments": shared.json_text(part.input)},
        }
        for part in message.content
        if isinstance(part, ToolCallPart) and not part.provider_executed
    ]
    text = "".join(part.text for part in message.content if isinstance(part, TextPart))
    reasoning = "".join(part.text for part in message.content if isinstance(part, ReasoningPart))
    item: JsonObject = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        item["reasoning_content"] = reasoning
    if calls:
        item["tool_calls"] = calls
    return item


def _tool_results(message: LLMMessage, images: list[str]) -> Iterable[JsonObject]:
    for part in message.content:
        if not isinstance(part, ToolResultPart) or part.provider_executed:
            continue
        result = shared.lower_result(part.result)
        texts = [result.text]
        for media in result.media:
            _attach(media, texts, images)
        content = "\n\n".join(text for text in texts if text)
        yield {"role": "tool", "tool_call_id": part.id, "content": content}


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


def _options(request: LLMRequest) -> JsonObject:
    """Model Request Options by their wire names: `reasoningEffort` is `reasoning_effort`."""
    options = request.options.get(_OPTIONS_NAMESPACE, {})
    body: JsonObject = {_CAPITAL.sub("_", name).lower(): options[name] for name in options}
    cache_key = request.options.get("openai", {}).get("promptCacheKey")
    if cache_key is not None:
        body["prompt_cache_key"] = cache_key
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
    recover=stream.recover,
)
