"""Bedrock Converse: the request side.

Messages of the two roles must alternate strictly, so the results of an answer's calls are written
with what follows it: the user's message, the next answer, or the end. Cache points are separate
blocks, for the models that accept them. `content` makes the content of messages.

Invariant: no two messages of one role are adjacent, the first and the last are the user's, and a
conversation with calls is never sent without tools.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from perdure.llm.aws.event_stream import AwsFrames
from perdure.llm.encoding import cache_marks, shared
from perdure.llm.encoding.cache_marks import Marker
from perdure.llm.encoding.wire_protocol import ModelFacts, SegmentPosition, WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.message import Segment
from perdure.llm.protocols.bedrock import content, stream
from perdure.llm.protocols.shared import tool_schema
from perdure.llm.request import LLMRequest, ToolChoice, ToolDefinition
from perdure.schema.codec import JsonObject

THINKING_TOKENS_MIN: Final = 1024

_CLAUDE: Final = re.compile(r"anthropic\.claude")
_NOVA: Final = re.compile(r"amazon\.nova")
_CACHING_CLAUDE: Final = re.compile(
    r"anthropic\.claude-(?!v|instant|3-(?:haiku|opus|sonnet)|3-5-sonnet-20240620)"
)
_CHOICES: Final[Mapping[ToolChoice, JsonObject]] = {"auto": {"auto": {}}, "required": {"any": {}}}
_HEAD_OPTIONS: Final = ("guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier")
_BEFORE_AN_ANSWER: Final = "(The conversation begins with an answer.)"
_AFTER_AN_ANSWER: Final = "Go on."
_NO_ANSWER: Final = "(no answer)"
_PAST_TOOL: Final = "Was used earlier. It cannot be used now."


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the messages. Unset options are omitted."""
    options = request.options.get(stream.NAMESPACE, {})
    body: JsonObject = {
        name: options[name] for name in _HEAD_OPTIONS if options.get(name) is not None
    }
    reasoning = _reasoning(request, options, facts)
    body["inferenceConfig"] = _inference(request, facts, reasoning)
    if system := [block for part in request.system for block in content.text(part)]:
        body["system"] = [*system, *([_cache_point(request)] if _takes_marks(facts) else [])]
    if tools := _tools(request, facts):
        body["toolConfig"] = tools
    if fields := _additional(request, options, reasoning):
        body["additionalModelRequestFields"] = fields
    return body


def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
    """A placeholder user message, if the conversation would not begin with the user."""
    del facts
    if request.segments and not request.segments[0].is_answer:
        return []
    return [_user(content.text(_BEFORE_AN_ANSWER))]


def closing(request: LLMRequest) -> list[JsonObject]:
    """The results of the last answer's calls, or a placeholder user message."""
    if not request.segments or not request.segments[-1].is_answer:
        return []
    return [_user(content.results(request.segments[-1]) or content.text(_AFTER_AN_ANSWER))]


def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    """The user's message or the answer of a segment, without the results of its calls."""
    if segment.is_answer:
        return [_assistant(content.answer(segment))]
    return [_user(content.user_content(segment, documents=content.reads_documents(facts.name)))]


def adapted(listed: list[JsonObject], position: SegmentPosition) -> list[JsonObject]:
    """The items after the previous answer's results, with unique document names."""
    before, named = position.before, [_with_names(item, position.index) for item in listed]
    if before is None:
        return named
    by_user = named[0]["role"] == "user"
    if not before.is_answer:
        return [_assistant(content.text(_NO_ANSWER)), *named] if by_user else named
    owed = content.results(before)
    if not by_user:
        return [_user(owed or content.text(_AFTER_AN_ANSWER)), *named]
    return [_user(owed + named[0]["content"]), *named[1:]]


def marker(request: LLMRequest, facts: ModelFacts) -> Marker | None:
    """Adds a cache point at the end of a message; for Nova, which caches only text, after it."""
    if not _takes_marks(facts):
        return None
    point, text_only = _cache_point(request), _NOVA.search(facts.name) is not None

    def mark(message: JsonObject) -> JsonObject:
        blocks: list[JsonObject] = message["content"]
        at = len(blocks)
        while text_only and at and not blocks[at - 1].keys() & {"text", "toolResult"}:
            at -= 1
        return message | {"content": [*blocks[:at], *([point] if at else []), *blocks[at:]]}

    return mark


def _cache_point(request: LLMRequest) -> JsonObject:
    lifetime = cache_marks.lifetime(request.options.get(stream.NAMESPACE, {}))
    return {"cachePoint": {"type": "default"} | lifetime}


def _user(blocks: list[JsonObject]) -> JsonObject:
    return {"role": "user", "content": blocks}


def _assistant(blocks: list[JsonObject]) -> JsonObject:
    return {"role": "assistant", "content": blocks}


def _with_names(item: JsonObject, index: int) -> JsonObject:
    """The item with document names that are unique in the conversation."""
    blocks: list[JsonObject] = list(item["content"])
    for number, block in enumerate(blocks):
        document = block.get("document")
        if document is not None:
            name = f"{document['name']} {index}-{number}"
            blocks[number] = {"document": document | {"name": name}}
    return item | {"content": blocks}


def _takes_marks(facts: ModelFacts) -> bool:
    return bool(_CACHING_CLAUDE.search(facts.name) or _NOVA.search(facts.name))


def _inference(request: LLMRequest, facts: ModelFacts, reasoning: JsonObject) -> JsonObject:
    controls = request.generation
    most = controls.max_tokens or facts.output_limit or None
    budget = reasoning.get("thinking", {}).get("budget_tokens")
    if most is None and budget is not None:
        most = budget + THINKING_TOKENS_MIN
    named: JsonObject = {
        "maxTokens": most,
        "stopSequences": [text for text in controls.stop if text.strip()] or None,
    }
    if not reasoning:
        # The provider refuses these together with thinking.
        named |= {"temperature": controls.temperature, "topP": controls.top_p}
    return {name: value for name, value in named.items() if value is not None}


def _additional(request: LLMRequest, options: JsonObject, reasoning: JsonObject) -> JsonObject:
    given = options.get("additionalModelRequestFields")
    fields: JsonObject = dict(given) if shared.is_object(given) else {}
    if request.generation.top_k is not None and not reasoning:
        fields["top_k"] = request.generation.top_k
    return fields | reasoning


def _reasoning(request: LLMRequest, options: JsonObject, facts: ModelFacts) -> JsonObject:
    """The reasoning option in the model's own terms; empty if this request allows none."""
    asked = options.get("reasoningConfig")
    if not shared.is_object(asked) or asked.get("type") in (None, "disabled"):
        return {}
    if _NOVA.search(facts.name):
        return {"reasoningConfig": asked}
    if not _CLAUDE.search(facts.name) or (request.tools and request.tool_choice == "required"):
        return {}
    if asked["type"] != "enabled":
        return {"thinking": {"type": asked["type"]}}
    budget = asked.get("budgetTokens")
    if not isinstance(budget, int) or budget < THINKING_TOKENS_MIN:
        raise LLMError(
            "invalid-request",
            f"The `reasoningConfig` option needs a `budgetTokens` of at least"
            f" {THINKING_TOKENS_MIN}",
        )
    most = request.generation.max_tokens or facts.output_limit
    budget = min(budget, most - 1) if most else budget
    if budget < THINKING_TOKENS_MIN or not _may_go_on_thinking(request.segments):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_go_on_thinking(segments: tuple[Segment, ...]) -> bool:
    """Whether thinking may stay on: an answer with executed calls must begin with thinking."""
    latest = next((segment for segment in reversed(segments) if segment.is_answer), None)
    if latest is None or not any(content.called(latest)):
        return True
    return "reasoningContent" in content.answer(latest)[0]


def _tools(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The offered tools. A conversation with calls must have some."""
    offered = [_tool(tool) for tool in request.tools]
    if not offered or request.tool_choice == "none":
        # Only now is the whole conversation searched.
        past = next(
            (name for segment in request.segments for name in content.called(segment)), None
        )
        if past is None:
            return {}
        offered = offered or [_tool(ToolDefinition(past, _PAST_TOOL, {}))]
    # Nova accepts no cache point here.
    point = [_cache_point(request)] if _CACHING_CLAUDE.search(facts.name) else []
    config: JsonObject = {"tools": [*offered, *point]}
    if request.tools and request.tool_choice in _CHOICES:
        config["toolChoice"] = _CHOICES[request.tool_choice]
    return config


def _tool(tool: ToolDefinition) -> JsonObject:
    schema = tool_schema.flattened(tool.input_schema)
    spec: JsonObject = {"name": tool.name, "inputSchema": {"json": schema}}
    return {"toolSpec": spec | ({"description": tool.description} if tool.description else {})}


def _path(model: str) -> str:
    return f"/model/{quote(model, safe='')}/converse-stream"


BEDROCK_CONVERSE: Final = WireProtocol(
    name="bedrock-converse",
    path=_path,
    conversation_field="messages",
    head=head,
    opening=opening,
    items=items,
    closing=closing,
    adapted=adapted,
    marker=marker,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
    accept="application/vnd.amazon.eventstream",
    frames=AwsFrames,
)
