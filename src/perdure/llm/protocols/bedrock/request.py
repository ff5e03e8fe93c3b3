"""Bedrock Converse: the request side.

Pure. Messages of the two roles alternate strictly, so what is owed to the model after an answer,
the results of its calls, is written with what comes next: the words of the user, the next answer,
or the end. Cache points are blocks of their own, for the models that take them. The content of
messages is made in bedrock_converse_content.

Invariant: no two messages of one role stand side by side, the first and the last are the user's,
and a conversation with calls never goes without tools.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from perdure.llm.aws.event_stream import AwsFrames
from perdure.llm.encoding import shared
from perdure.llm.encoding.wire_protocol import ModelFacts, SegmentPosition, WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.message import Segment
from perdure.llm.protocols.bedrock import content, stream
from perdure.llm.protocols.shared import tool_schema
from perdure.llm.request import LLMRequest, ToolChoice, ToolDefinition
from perdure.schema.codec import JsonObject

THINKING_TOKENS_MIN: Final = 1024

_CACHE_POINT: Final[JsonObject] = {"cachePoint": {"type": "default"}}
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
    """Everything of the body but the messages. What was not asked for is not written."""
    options = request.options.get(stream.NAMESPACE, {})
    body: JsonObject = {
        name: options[name] for name in _HEAD_OPTIONS if options.get(name) is not None
    }
    reasoning = _reasoning(request, options, facts)
    body["inferenceConfig"] = _inference(request, facts, reasoning)
    if system := [block for part in request.system for block in content.text(part)]:
        body["system"] = [*system, *([_CACHE_POINT] if _takes_hints(facts) else [])]
    if tools := _tools(request, facts):
        body["toolConfig"] = tools
    if fields := _additional(request, options, reasoning):
        body["additionalModelRequestFields"] = fields
    return body


def opening(request: LLMRequest) -> list[JsonObject]:
    """A word of the user, where the conversation would not begin with one."""
    if request.runs and not request.runs[0].is_answer:
        return []
    return [_user(content.text(_BEFORE_AN_ANSWER))]


def closing(request: LLMRequest) -> list[JsonObject]:
    """What is owed after the last answer, or a word of the user."""
    if not request.runs or not request.runs[-1].is_answer:
        return []
    return [_user(content.results(request.runs[-1]) or content.text(_AFTER_AN_ANSWER))]


def items(run: Segment, facts: ModelFacts) -> list[JsonObject]:
    """The words of the user or the answer of a run, without what is owed after it."""
    if run.is_answer:
        return [_assistant(content.answer(run))]
    return [_user(content.user_content(run, documents=content.reads_documents(facts.name)))]


def placed(listed: list[JsonObject], place: SegmentPosition) -> list[JsonObject]:
    """The same items after what is owed, with each document's name unique by its place."""
    before, named = place.before, [_with_names(item, place.index) for item in listed]
    if before is None:
        return named
    by_user = named[0]["role"] == "user"
    if not before.is_answer:
        return [_assistant(content.text(_NO_ANSWER)), *named] if by_user else named
    owed = content.results(before)
    if not by_user:
        return [_user(owed or content.text(_AFTER_AN_ANSWER)), *named]
    return [_user(owed + named[0]["content"]), *named[1:]]


def marked(listed: list[JsonObject]) -> list[JsonObject]:
    """The same items with a cache point after the last text of the user, or at the end."""
    blocks: list[JsonObject] = listed[-1]["content"]
    texts = [index for index, block in enumerate(blocks) if "text" in block]
    after = (texts[-1] if texts else len(blocks) - 1) + 1
    return [*listed[:-1], _user([*blocks[:after], _CACHE_POINT, *blocks[after:]])]


def _user(blocks: list[JsonObject]) -> JsonObject:
    return {"role": "user", "content": blocks}


def _assistant(blocks: list[JsonObject]) -> JsonObject:
    return {"role": "assistant", "content": blocks}


def _with_names(item: JsonObject, index: int) -> JsonObject:
    """Names of documents are unique in a conversation, even of those that are sent twice."""
    blocks: list[JsonObject] = list(item["content"])
    for number, block in enumerate(blocks):
        document = block.get("document")
        if document is not None:
            name = f"{document['name']} {index}-{number}"
            blocks[number] = {"document": document | {"name": name}}
    return item | {"content": blocks}


def _takes_hints(facts: ModelFacts) -> bool:
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
        # A model that thinks takes none of these.
        named |= {"temperature": controls.temperature, "topP": controls.top_p}
    return {name: value for name, value in named.items() if value is not None}


def _additional(request: LLMRequest, options: JsonObject, reasoning: JsonObject) -> JsonObject:
    given = options.get("additionalModelRequestFields")
    fields: JsonObject = dict(given) if shared.is_object(given) else {}
    if request.generation.top_k is not None and not reasoning:
        fields["top_k"] = request.generation.top_k
    return fields | reasoning


def _reasoning(request: LLMRequest, options: JsonObject, facts: ModelFacts) -> JsonObject:
    """The reasoning option in the model's own terms; empty where this request allows none."""
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
    if budget < THINKING_TOKENS_MIN or not _may_go_on_thinking(request.runs):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_go_on_thinking(runs: tuple[Segment, ...]) -> bool:
    """With a thinking budget, an answer whose calls we made must have begun with thinking."""
    latest = next((run for run in reversed(runs) if run.is_answer), None)
    if latest is None or not any(content.called(latest)):
        return True
    return "reasoningContent" in content.answer(latest)[0]


def _tools(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The tools on offer. Where calls are part of the conversation, there must be some."""
    offered = [_tool(tool) for tool in request.tools]
    if not offered or request.tool_choice == "none":
        # Only then is it worth to look through the whole conversation.
        past = next((name for run in request.runs for name in content.called(run)), None)
        if past is None:
            return {}
        offered = offered or [_tool(ToolDefinition(past, _PAST_TOOL, {}))]
    # Nova takes no cache point here.
    hint = [_CACHE_POINT] if _CACHING_CLAUDE.search(facts.name) else []
    config: JsonObject = {"tools": [*offered, *hint]}
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
    placed=placed,
    marked=marked,
    takes_hints=_takes_hints,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
    accept="application/vnd.amazon.eventstream",
    frames=AwsFrames,
)
