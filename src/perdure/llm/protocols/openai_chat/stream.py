"""OpenAI Chat Completions: the response side, one chunk at a time.

The hot path of every turn: a chunk is decoded directly into a typed struct. Servers split tool
calls into chunks differently, so `_find_call` matches them. Secrets are removed from messages
later.

Invariant: a tool call is emitted only after the provider's finish reason or the end of the stream;
a text or reasoning block ends before the next part starts.
"""

from typing import Final

import msgspec
from msgspec import field

from perdure.llm.encoding import call_id, provider_json, token_usage, tool_input
from perdure.llm.event import (
    Finish,
    FinishReason,
    LLMEvent,
    ProviderError,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from perdure.llm.http import error_body
from perdure.llm.protocols.openai_chat import failed_call
from perdure.llm.protocols.openai_chat.reasoning_details import ReasoningDetails
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import State

NAMESPACE: Final = "openai_compatible"
"""The namespace of this protocol's options and metadata."""

# Beside OpenAI's: Together (eos), Mistral (model_length), DeepSeek (insufficient_system_resource),
# Z.ai (sensitive, network_error, model_context_window_exceeded), vLLM (abort), each from its API
# reference.
_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content-filter",
    "sensitive": "content-filter",
    "abort": "error",
    "error": "error",
    "insufficient_system_resource": "error",
    "network_error": "error",
}
_CUT_REASONS: Final = frozenset({"length", "content-filter", "error"})
_NOT_GIVEN: Final = (b"", b"null")


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | JsonObject | None = None


class _CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Thought(msgspec.Struct, gc=False):
    text: str | None = None


class _Piece(msgspec.Struct, gc=False):
    text: str | None = None
    thinking: str | list[_Thought] | None = None
    """Of Mistral's reasoning models."""


class _Delta(msgspec.Struct, gc=False):
    content: str | list[_Piece] | None = None
    reasoning_content: str | None = None
    reasoning: str | JsonObject | None = None
    reasoning_details: JsonValue = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Groq(msgspec.Struct, gc=False):
    usage: msgspec.Raw = msgspec.Raw()


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    object: str | None = None
    x_groq: _Groq | None = None


_CHUNK: Final = msgspec.json.Decoder(_Chunk)


class _Call(State):
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])


class _State(State):
    text_id: str | None = None
    reasoning_id: str | None = None
    texts: int = 0
    reasonings: int = 0
    reasoning_field: str = ""
    details: ReasoningDetails = field(default_factory=ReasoningDetails)
    """Reasoning details that no reasoning block has been given yet."""
    calls: list[_Call] = field(default_factory=list[_Call])
    by_id: dict[str, _Call] = field(default_factory=dict[str, _Call])
    latest: dict[int, _Call] = field(default_factory=dict[int, _Call])
    """By index, which some servers give to several calls."""
    reason: FinishReason | None = None
    usage: Usage | None = None
    counts: int = 0
    """How many chunks had counts."""
    counted_last: bool = False
    """Whether the newest chunk had counts, and no chunk before it: then it is the last one."""


def start() -> _State:
    return _State()


def step(state: _State, data: bytes) -> tuple[LLMEvent, ...]:
    """Process one chunk. `[DONE]` and an error object end the answer."""
    if data == b"[DONE]":
        return _done(state)
    chunk = provider_json.decode(_CHUNK, data, "a chunk")
    if chunk.error or chunk.object == "error":
        failed = _failure(state, chunk.error or msgspec.Raw(data))
        if failed:
            return failed
    if chunk.usage or chunk.x_groq is not None:
        state.counted_last = False
        _count(state, chunk.usage)
        _count(state, chunk.x_groq.usage if chunk.x_groq else msgspec.Raw())
    elif state.counted_last:
        state.counted_last = False
    if not chunk.choices:
        return ()
    choice = chunk.choices[0]
    return _more_text(state, choice) or _whole_choice(state, choice)


def finish(state: _State) -> tuple[LLMEvent, ...]:
    """End a stream without `[DONE]`: complete only if a finish reason or the counts came."""
    if state.reason is None and not state.counted_last:
        raise provider_json.incomplete()
    return _done(state)


def recover(body: bytes) -> tuple[LLMEvent, ...]:
    """The answer that a refusal stands for; empty if it is only a refusal."""
    try:
        refusal = _CHUNK.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    unread = failed_call.read(refusal.error, "call_0")
    return (*unread, Finish("tool-calls")) if unread else ()


def _done(state: _State) -> tuple[LLMEvent, ...]:
    """The end of the answer. Some servers give no finish reason (Snowflake Cortex)."""
    if state.reason is not None:
        return (Finish(state.reason, state.usage),)
    events: list[LLMEvent] = [*_close_blocks(state)]
    for call in state.calls:
        _settle_call(call, events, cut=True)
    return (*events, Finish("tool-calls" if state.calls else "unknown", state.usage))


def _more_text(state: _State, choice: _Choice) -> tuple[TextDelta] | None:
    """One more piece of an open text, as nearly all chunks are; None for any other chunk."""
    text_id, delta = state.text_id, choice.delta
    if text_id is None or delta is None or choice.finish_reason:
        return None
    if delta.reasoning_content or delta.reasoning or delta.reasoning_details or delta.tool_calls:
        return None
    content = delta.content
    return (TextDelta(text_id, content),) if content and isinstance(content, str) else None


def _whole_choice(state: _State, choice: _Choice) -> tuple[LLMEvent, ...]:
    if choice.usage:
        _count(state, choice.usage)
    if choice.error and (failed := _failure(state, choice.error)):
        return failed
    return _choice(state, choice)


def _choice(state: _State, choice: _Choice) -> tuple[LLMEvent, ...]:
    if state.reason is not None:
        return ()
    events: list[LLMEvent] = []
    delta = choice.delta
    if delta is not None:
        reasoning = delta.reasoning_content or delta.reasoning
        if delta.reasoning_details:
            state.details.add(delta.reasoning_details)
        if reasoning and isinstance(reasoning, str):
            state.reasoning_field = "" if delta.reasoning_content else "reasoning"
            _reasoning(state, reasoning, events)
        content = delta.content or delta.refusal
        if isinstance(content, list):
            _pieces(state, content, events)
        elif content:
            _text(state, content, events)
        if delta.tool_calls:
            provider_json.require_few(delta.tool_calls, "pieces of calls")
            for call in delta.tool_calls:
                _tool_call(state, call, events)
    if choice.finish_reason:
        _finish_reason(state, choice.finish_reason, events)
    return tuple(events)


def _text(state: _State, text: str, events: list[LLMEvent]) -> None:
    if state.text_id is None:
        events += _close_blocks(state)
        state.text_id = f"text-{state.texts}"
        state.texts += 1
        events.append(TextStart(state.text_id))
    events.append(TextDelta(state.text_id, text))


def _pieces(state: _State, pieces: list[_Piece], events: list[LLMEvent]) -> None:
    provider_json.require_few(pieces, "pieces of a text")
    for piece in pieces:
        thinking = piece.thinking
        if isinstance(thinking, list):
            provider_json.require_few(thinking, "pieces of a thought")
            thinking = "".join(thought.text or "" for thought in thinking)
        if thinking:
            _reasoning(state, thinking, events)
        if piece.text:
            _text(state, piece.text, events)


def _reasoning(state: _State, text: str, events: list[LLMEvent]) -> None:
    if state.reasoning_id is None:
        events += _close_blocks(state)
        state.reasoning_id = f"reasoning-{state.reasonings}"
        state.reasonings += 1
        events.append(ReasoningStart(state.reasoning_id))
    events.append(ReasoningDelta(state.reasoning_id, text))


def _tool_call(state: _State, delta: _CallDelta, events: list[LLMEvent]) -> None:
    function = delta.function or _Function()
    call = _find_call(state, delta, function)
    if call is None:
        call = _begin_call(state, delta)
    if function.name and not call.name:
        call.name = function.name
        events += _close_blocks(state)
        events.append(ToolInputStart(call.id, call.name))
        # Input that came before the name is emitted now.
        events += (ToolInputDelta(call.id, text) for text in call.arguments)
    arguments = function.arguments
    if arguments:
        text = arguments if isinstance(arguments, str) else codec.encode(arguments).decode()
        call.arguments.append(text)
        if call.name:
            events.append(ToolInputDelta(call.id, text))


def _find_call(state: _State, delta: _CallDelta, function: _Function) -> _Call | None:
    """The call that a delta belongs to; None if it begins a new one.

    Deltas are matched by index. Some servers send no index, some give every parallel call the
    index 0, some repeat the id and some invent a new id for each delta: only a new id together
    with a name begins a new call at an index that is in use.
    """
    if delta.index is None:
        if not delta.id:
            return None if function.name or not state.calls else state.calls[-1]
        return state.by_id.get(delta.id)
    latest = state.latest.get(delta.index)
    if latest is None:
        return None
    another = delta.id and delta.id != latest.id and function.name and latest.name
    return None if another else latest


def _begin_call(state: _State, delta: _CallDelta) -> _Call:
    index = len(state.calls) if delta.index is None else delta.index
    call = _Call(call_id.free_id(delta.id, state.by_id, index))
    state.calls.append(call)
    state.by_id[call.id] = state.latest[index] = call
    return call


def _finish_reason(state: _State, wire: str, events: list[LLMEvent]) -> None:
    events += _close_blocks(state)
    events += _remaining_details(state)
    reason = _REASONS.get(wire, "unknown")
    cut = reason in _CUT_REASONS
    for call in state.calls:
        _settle_call(call, events, cut=cut)
    state.reason = "tool-calls" if state.calls and not cut else reason


def _settle_call(call: _Call, events: list[LLMEvent], *, cut: bool) -> None:
    if not call.name:
        raise provider_json.invalid_output("a tool call without a name")
    text = "".join(call.arguments)
    events.append(ToolInputEnd(call.id, text))
    events.append(tool_input.parse_call(call.id, call.name, text, cut=cut))


def _close_blocks(state: _State) -> tuple[LLMEvent, ...]:
    if state.text_id is not None:
        closed, state.text_id = TextEnd(state.text_id), None
        return (closed,)
    if state.reasoning_id is not None:
        ended = ReasoningEnd(state.reasoning_id, _take_metadata(state))
        state.reasoning_id = None
        return (ended,)
    return ()


def _take_metadata(state: _State) -> ProviderMetadata | None:
    """What is needed to send the reasoning back as it came."""
    native: JsonObject = {}
    if state.reasoning_field:
        native["field"] = state.reasoning_field
    if details := state.details.take():
        native["reasoning_details"] = details
    return {NAMESPACE: native} if native else None


def _remaining_details(state: _State) -> tuple[LLMEvent, ...]:
    """Details that came without any reasoning text, such as encrypted ones, as a block."""
    if not state.details.details:
        return ()
    state.reasoning_field = ""
    block = f"reasoning-{state.reasonings}"
    state.reasonings += 1
    return (ReasoningStart(block), ReasoningEnd(block, _take_metadata(state)))


def _count(state: _State, raw: msgspec.Raw) -> None:
    if bytes(raw) not in _NOT_GIVEN:
        read = token_usage.read(bytes(raw))
        state.usage = token_usage.merge(state.usage, read)
        state.counts += read is not None
        state.counted_last = read is not None and state.counts == 1


def _failure(state: _State, raw: msgspec.Raw) -> tuple[LLMEvent, ...]:
    """The events that an error ends the answer with; none for a null."""
    value = codec.decode_any(raw)
    if value is None:
        return ()
    if unread := failed_call.read(raw, call_id.free_id(None, state.by_id, len(state.calls))):
        return (*_close_blocks(state), *unread, Finish("tool-calls", state.usage))
    detail = error_body.detail_of(value)
    error = ProviderError(message=detail.text, reason=detail.reason())
    return (*_close_blocks(state), error)
