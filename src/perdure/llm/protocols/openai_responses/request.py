"""OpenAI Responses: the request side, for OpenAI itself and for Azure.

Nothing is stored at the provider unless configured: reasoning comes back encrypted and is sent
again that way. Generation Controls without a form here (top_k, penalties, seed, stop) are not
sent. `content` makes the items of the conversation.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.protocols.openai_responses import native, stream
from perdure.llm.protocols.openai_responses.content import items
from perdure.llm.protocols.shared import tool_schema
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema.codec import JsonObject

OUTPUT_TOKENS_MIN: Final = 16
ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
INCLUDABLE: Final = frozenset(
    {
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "message.output_text.logprobs",
        ENCRYPTED_REASONING,
        "web_search_call.action.sources",
        "web_search_call.results",
    }
)
_PLAIN: Final[Mapping[str, str]] = {
    "instructions": "instructions",
    "maxToolCalls": "max_tool_calls",
    "metadata": "metadata",
    "parallelToolCalls": "parallel_tool_calls",
    "promptCacheKey": "prompt_cache_key",
    "promptCacheRetention": "prompt_cache_retention",
    "safetyIdentifier": "safety_identifier",
    "serviceTier": "service_tier",
    "truncation": "truncation",
    "user": "user",
}
"""Model Request Options that are sent unchanged -> their wire names."""

_REASONING_MODEL: Final = re.compile(r"(?:.*/)?(?:o\d|codex|gpt-(?:[5-9]|\d\d))(?!.*chat)")


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the input. Unset options are omitted."""
    options = request.options.get(native.NAMESPACE, {})
    body: JsonObject = {
        wire: options[name] for name, wire in _PLAIN.items() if options.get(name) is not None
    }
    body |= {"model": facts.name, "stream": True, "store": options.get("store") is True}
    if reasoning := _reasoning(options):
        body["reasoning"] = reasoning
    if include := _include(options, facts):
        body["include"] = include
    if options.get("textVerbosity") is not None:
        body["text"] = {"verbosity": options["textVerbosity"]}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
    return body | _generation(request)


def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
    del facts
    text = "\n".join(part for part in request.system if part)
    return [{"role": "system", "content": text}] if text else []


def _tool(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool_schema.flattened(tool.input_schema),
        "strict": False,
    }


def _generation(request: LLMRequest) -> JsonObject:
    controls = request.generation
    limit = controls.max_tokens
    named: JsonObject = {
        "max_output_tokens": None if limit is None else max(limit, OUTPUT_TOKENS_MIN),
        "temperature": controls.temperature,
        "top_p": controls.top_p,
    }
    return {name: value for name, value in named.items() if value is not None}


def _reasoning(options: JsonObject) -> JsonObject:
    effort = options.get("reasoningEffort")
    if effort == "max":
        raise LLMError("invalid-request", 'OpenAI has no reasoning effort "max"')
    asked = {"effort": effort, "summary": options.get("reasoningSummary")}
    return {name: value for name, value in asked.items() if value is not None}


def _include(options: JsonObject, facts: ModelFacts) -> list[str]:
    wanted: list[str] = []
    match options.get("include"):
        case [*names]:
            wanted += (name for name in names if isinstance(name, str) and name in INCLUDABLE)
        case _:
            pass
    # Models that do not reason refuse a request for encrypted reasoning.
    reasons = _REASONING_MODEL.match(facts.name) is not None or bool(_reasoning(options))
    if options.get("store") is not True and reasons:
        wanted.append(ENCRYPTED_REASONING)
    return list(dict.fromkeys(wanted))


def _azure_path(model: str) -> str:
    del model
    return "/v1/responses?api-version=v1"


OPENAI_RESPONSES: Final = WireProtocol(
    name="openai-responses",
    path=lambda model: "/responses",
    conversation_field="input",
    head=head,
    opening=opening,
    items=items,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
)

AZURE_RESPONSES: Final = replace(OPENAI_RESPONSES, path=_azure_path)
"""The same protocol below an Azure resource's `/openai` URL."""
