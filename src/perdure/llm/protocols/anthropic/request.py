"""Anthropic Messages: the request side.

`content` makes the blocks. The provider reads adjacent messages of one role as one turn, so
segments need no filler between them. There are four cache marks: the last tool, the last system
part, and the ends of the last two requests.

Invariant: a segment's items depend on that segment alone, the conversation begins with the user,
and options that the provider refuses together are never sent together.
"""

import re
from typing import Final
from urllib.parse import quote

from msgspec import field
from msgspec.structs import replace

from perdure.llm.encoding import cache_marks, shared
from perdure.llm.encoding.cache_marks import Marker
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.message import Segment
from perdure.llm.protocols.anthropic import content, stream, tools
from perdure.llm.request import LLMRequest
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

VERSION: Final = "2023-06-01"
VERTEX_VERSION: Final = "vertex-2023-10-16"
OUTPUT_TOKENS: Final = 4096
"""Maximum output tokens if neither the request nor the model sets them."""
THINKING_TOKENS_MIN: Final = 1024

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_OWNED: Final = frozenset(
    {
        "cache_ttl",
        "max_tokens",
        "messages",
        "model",
        "stream",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
_BEFORE_AN_ANSWER: Final = "(The conversation begins with an answer.)"
_AFTER_AN_ANSWER: Final = "Go on."


def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body without the messages. Unset options are omitted."""
    body = _options(request)
    most = request.generation.max_tokens or facts.output_limit or OUTPUT_TOKENS
    thinking, cached = _thinking(request, most), _cache_control(request)
    body |= {"model": facts.name, "max_tokens": most, "stream": True}
    if system := [block for part in request.system for block in content.text(part)]:
        body["system"] = [*system[:-1], system[-1] | cached]
    if request.tools and request.tool_choice != "none":
        *offered, last = map(tools.definition, request.tools)
        body["tools"] = [*offered, last | cached]
        if request.tool_choice is not None:
            body["tool_choice"] = {"type": "any" if request.tool_choice == "required" else "auto"}
    if thinking is not None:
        body["thinking"] = thinking
    return body | _generation(request, thinks=thinking is not None)


def vertex_head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
    """The body for Vertex AI, where the URL names the model."""
    body = head(request, facts)
    del body["model"]
    return body | {"anthropic_version": VERTEX_VERSION}


def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
    """A placeholder user message, if the conversation would not begin with the user."""
    del facts
    if request.segments and not request.segments[0].is_answer:
        return []
    return [_message("user", content.text(_BEFORE_AN_ANSWER))]


def closing(request: LLMRequest) -> list[JsonObject]:
    """A placeholder user message, if the conversation would end with an answer.

    An answer that goes on ends it, with the hosted call that the provider was about to run, and so
    does the beginning of one that broke off.
    """
    if request.prefix is not None:
        # The provider refuses an answer that ends with a space.
        return [_message("assistant", content.text(request.prefix.text.rstrip()))]
    if request.goes_on and request.segments[-1].is_answer:
        pending = content.unfinished(request.segments[-1])
        return [_message("assistant", pending)] if pending else []
    if (
        not request.segments
        or not request.segments[-1].is_answer
        or content.results(request.segments[-1])
    ):
        return []
    return [_message("user", content.text(_AFTER_AN_ANSWER))]


def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    if not segment.is_answer:
        return _asked(segment, facts)
    blocks = (("assistant", content.answer(segment)), ("user", content.results(segment)))
    return [_message(role, listed) for role, listed in blocks if listed]


def marker(request: LLMRequest, facts: ModelFacts) -> Marker:
    del facts
    cached = _cache_control(request)

    def mark(message: JsonObject) -> JsonObject:
        *blocks, last = message["content"]
        return _message(message["role"], [*blocks, last | cached])

    return mark


def _cache_control(request: LLMRequest) -> JsonObject:
    return cache_marks.cache_control(request.options.get(stream.NAMESPACE, {}))


def _message(role: str, blocks: list[JsonObject]) -> JsonObject:
    return {"role": role, "content": blocks}


class _Asked(State):
    """The user's content, and trailing system updates."""

    user_blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    by_user: bool = False
    updates: list[str] = field(default_factory=list[str])
    """System updates wrapped as user text."""
    plain: list[JsonObject] = field(default_factory=list[JsonObject])
    """System updates as plain text."""

    def wrap_updates(self) -> None:
        for update in self.updates:
            self.user_blocks += content.text(update)
        self.updates, self.plain = [], []


def _asked(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    """One user message; trailing updates become a system message if the model accepts one."""
    asked = _Asked()
    for message in segment.messages:
        if message.role == "system":
            asked.updates.append(shared.system_update(message))
            asked.plain += content.user(message)
        else:
            asked.wrap_updates()
            asked.user_blocks += content.user(message)
            asked.by_user = True
    if facts.system_role and asked.by_user and asked.plain:
        user_blocks = asked.user_blocks or content.text(shared.EMPTY_MESSAGE)
        return [_message("user", user_blocks), _message("system", asked.plain)]
    asked.wrap_updates()
    return [_message("user", asked.user_blocks or content.text(shared.EMPTY_MESSAGE))]


def _thinking(request: LLMRequest, most: int) -> JsonObject | None:
    """The thinking option to send, or None if this request allows none."""
    asked = request.options.get(stream.NAMESPACE, {}).get("thinking")
    if not shared.is_object(asked) or asked.get("type") == "disabled":
        return None
    if request.tools and request.tool_choice == "required":
        return None
    if asked.get("type") != "enabled":
        return _named(asked)
    budget = asked.get("budgetTokens", asked.get("budget_tokens"))
    if not isinstance(budget, int) or budget < THINKING_TOKENS_MIN:
        raise LLMError(
            "invalid-request",
            f"The `thinking` option needs a `budgetTokens` of at least {THINKING_TOKENS_MIN}",
        )
    budget = min(budget, most - 1)
    if budget < THINKING_TOKENS_MIN or not _may_go_on_thinking(request.segments):
        return None
    return _named(asked) | {"budget_tokens": budget}


def _may_go_on_thinking(segments: tuple[Segment, ...]) -> bool:
    """Whether thinking may stay on: an answer with executed calls must begin with thinking."""
    latest: list[JsonObject] = []
    for segment in reversed(segments):
        # Answers without results between them are one turn for the provider.
        if latest and (not segment.is_answer or content.results(segment)):
            break
        if segment.is_answer:
            latest = content.answer(segment) + latest
    calls = any(block["type"] == "tool_use" for block in latest)
    return not calls or latest[0]["type"] in content.THINKING


def _generation(request: LLMRequest, *, thinks: bool) -> JsonObject:
    controls = request.generation
    named: JsonObject = {"stop_sequences": [text for text in controls.stop if text.strip()] or None}
    if not thinks:
        # The provider refuses these together with thinking.
        named |= {
            "temperature": controls.temperature,
            "top_p": controls.top_p,
            "top_k": controls.top_k,
        }
    return {name: value for name, value in named.items() if value is not None}


def _options(request: LLMRequest) -> JsonObject:
    """Model Request Options by their wire names, without those that the protocol writes."""
    options = _named(request.options.get(stream.NAMESPACE, {}))
    return {name: value for name, value in options.items() if name not in _OWNED}


def _named(options: JsonObject) -> JsonObject:
    """Convert names such as `budgetTokens` to `budget_tokens`."""
    named: JsonObject = {}
    for name, value in options.items():
        named[_CAPITAL.sub("_", name).lower()] = value
    return named


def _vertex_path(model: str) -> str:
    return f"/models/{quote(model, safe='@')}:streamRawPredict"


ANTHROPIC_MESSAGES: Final = WireProtocol(
    name="anthropic-messages",
    path=lambda model: "/messages",
    conversation_field="messages",
    head=head,
    opening=opening,
    items=items,
    closing=closing,
    start=stream.start,
    step=stream.step,
    finish=stream.finish,
    marker=marker,
    headers={"anthropic-version": VERSION},
)

VERTEX_MESSAGES: Final = replace(
    ANTHROPIC_MESSAGES,
    name="vertex-anthropic-messages",
    path=_vertex_path,
    head=vertex_head,
    headers={},
)
