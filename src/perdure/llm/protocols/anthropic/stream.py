"""Anthropic Messages: the response side, one event at a time.

The hot path of every turn: an event is decoded directly into a typed struct. Content comes in
numbered blocks. Data that is needed to send thinking and hosted results back to the same model is
kept as provider metadata. Secrets are removed from messages later.

Invariant: a tool call is emitted when the block after it begins, or with the stop reason, because
only then it is known not to be cut; a text or reasoning part ends before the next part starts.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import field

from perdure.llm.encoding import call_id, provider_json, shared, tool_input
from perdure.llm.error import LLMError
from perdure.llm.event import (
    Finish,
    FinishReason,
    HostedToolResult,
    LLMEvent,
    ProviderError,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputInvalid,
    ToolInputStart,
)
from perdure.llm.http import error_body
from perdure.llm.message import ToolResult
from perdure.llm.protocols.anthropic import events as wire
from perdure.llm.protocols.anthropic.events import Content, Event
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import State

NAMESPACE: Final = "anthropic"
"""The metadata namespace of this protocol."""

_REASONS: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "compaction": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content-filter",
}
_CUT_REASONS: Final = frozenset({"length", "content-filter"})
_PAUSES: Final = frozenset({"pause_turn", "compaction"})
"""The provider paused in work of its own, and goes on with the answer when it is sent back."""
_RESULT: Final = "_tool_result"
COMPACTION: Final = "compaction"
"""A summary that the provider made of its earlier context; it stands where it was made."""
MCP_CALL: Final = "mcp_tool_use"
_HOSTED_CALLS: Final = frozenset({"server_tool_use", MCP_CALL})


_Kind = Literal["text", "thinking", "call", "ignored"]


class _Block(State):
    kind: _Kind
    id: str = ""
    name: str = ""
    hosted: bool = False
    begun: bool = False
    ended: bool = False
    emitted: bool = False
    """Whether the call was passed on."""
    pieces: list[str] = field(default_factory=list[str])
    """The input of a call, or the signature of thinking."""
    redacted: str | None = None
    compaction: bool = False
    server_name: str | None = None
    """The MCP server of a hosted call."""

    @property
    def metadata(self) -> ProviderMetadata | None:
        if self.compaction:
            return {NAMESPACE: {"type": COMPACTION}}
        if self.redacted is not None:
            return {NAMESPACE: {"redactedData": self.redacted}}
        signature = "".join(self.pieces)
        return {NAMESPACE: {"signature": signature}} if signature else None


class _State(State):
    open: dict[int, _Block] = field(default_factory=dict[int, _Block])
    texts: int = 0
    reasonings: int = 0
    calls: list[_Block] = field(default_factory=list[_Block])
    unanswered: set[str] = field(default_factory=set[str])
    """Hosted calls without a result yet."""
    reason: FinishReason | None = None
    paused: bool = False
    usage: JsonObject = field(default_factory=dict[str, object])


def start() -> _State:
    return _State()


def step(state: _State, data: bytes) -> tuple[LLMEvent, ...]:
    """Process one event. `message_stop` and `error` end the answer; unknown ones are ignored."""
    event = wire.decode(data)
    match event.type:
        case "content_block_delta":
            return () if state.reason else _delta(state, event)
        case "content_block_start":
            return () if state.reason else tuple(_block_start(state, event))
        case "content_block_stop":
            block = state.open.pop(event.index, None)
            return () if block is None else tuple(_block_end(state, block))
        case "message_start":
            state.usage |= wire.counted(event.message.usage if event.message else event.usage)
        case "message_delta":
            # Counts are totals: later ones replace earlier ones.
            state.usage |= wire.counted(event.usage)
            return tuple(_message_delta(state, event))
        case "message_stop":
            return _message_stop(state)
        case _ if event.is_error:
            return (*_close_prose(state), _provider_error(event, data))
        case _:
            pass
    return ()


def finish(state: _State) -> tuple[LLMEvent, ...]:
    """End a stream without `message_stop`: complete only if a stop reason came."""
    if state.reason is None:
        raise provider_json.incomplete()
    return (_finish(state, state.reason),)


def _delta(state: _State, event: Event) -> tuple[LLMEvent, ...]:
    block, delta = state.open.get(event.index), event.delta
    if block is None:
        raise LLMError(
            "invalid-provider-output",
            f"The provider continued content block {event.index}, which is not open",
        )
    if delta is None:
        return ()
    if block.kind == "text":
        return _text(block, delta.text) if delta.text else ()
    if block.kind == "call" and delta.partial_json:
        block.pieces.append(delta.partial_json)
        return (ToolInputDelta(block.id, delta.partial_json),)
    if block.kind == "thinking":
        if delta.signature:
            block.pieces.append(delta.signature)
        text = delta.content if block.compaction else delta.thinking
        return (ReasoningDelta(block.id, text),) if text else ()
    return ()


def _text(block: _Block, text: str) -> tuple[LLMEvent, ...]:
    if block.begun:
        return (TextDelta(block.id, text),)
    # Empty texts are dropped, so a text begins with its first delta.
    block.begun = True
    return (TextStart(block.id), TextDelta(block.id, text))


def _block_start(state: _State, event: Event) -> Iterator[LLMEvent]:
    yield from _close_prose(state)
    replaced = state.open.pop(event.index, None)
    if replaced is not None:
        yield from _block_end(state, replaced)
    for call in _waiting(state):
        if call.ended:
            yield _made(call, cut=False)
    content = event.content_block or Content()
    if content.type == "text":
        block = _Block("text", f"text-{state.texts}")
        state.texts += 1
        yield from _text(block, content.text) if content.text else ()
    elif content.type in ("thinking", "redacted_thinking", COMPACTION):
        block = _Block("thinking", f"reasoning-{state.reasonings}")
        state.reasonings += 1
        yield from _thinking_start(block, content)
    elif content.type == "tool_use" or content.type in _HOSTED_CALLS:
        block = _call_start(state, content)
        yield ToolInputStart(block.id, block.name)
    else:
        block = _Block("ignored")
        yield from _hosted_result(state, content)
    state.open[event.index] = block


def _thinking_start(block: _Block, content: Content) -> Iterator[LLMEvent]:
    block.compaction = content.type == COMPACTION
    if content.type == "redacted_thinking":
        block.redacted = content.data or ""
    if content.signature:
        block.pieces.append(content.signature)
    yield ReasoningStart(block.id, block.metadata)
    text = content.content if block.compaction else content.thinking
    if text and isinstance(text, str):
        yield ReasoningDelta(block.id, text)


def _call_start(state: _State, content: Content) -> _Block:
    if not content.name:
        raise provider_json.invalid_output("a tool call without a name")
    hosted = content.type in _HOSTED_CALLS
    block = _Block("call", _fresh_id(state, content.id), content.name, hosted)
    if content.type == MCP_CALL:
        block.server_name = content.server_name or ""
    if content.input:
        # Servers that do not stream the input send all of it here.
        block.pieces.append(shared.json_text(content.input))
    state.calls.append(block)
    return block


def _fresh_id(state: _State, given: str | None) -> str:
    return call_id.free_id(given, {call.id for call in state.calls}, len(state.calls))


def _hosted_result(state: _State, content: Content) -> Iterator[LLMEvent]:
    """A complete hosted result. Results of unknown calls and second results are ignored."""
    call = content.tool_use_id
    if not content.type.endswith(_RESULT) or call is None or call not in state.unanswered:
        return
    state.unanswered.remove(call)
    value = content.content
    native: JsonObject = {"type": content.type}
    if content.is_error:
        native["content"] = value
        yield HostedToolResult(call, ToolResult("error", _texts(value)), {NAMESPACE: native})
    elif shared.is_object(value) and isinstance(code := value.get("error_code"), str):
        # Only the message of a failure is stored, so the provider's content goes into metadata.
        native["content"] = value
        yield HostedToolResult(call, ToolResult("error", code), {NAMESPACE: native})
    else:
        yield HostedToolResult(call, ToolResult("json", value), {NAMESPACE: native})


def _texts(content: JsonValue) -> str:
    """The texts of a result's content, for a person."""
    texts = (item.get("text") for item in shared.elements(content) if shared.is_object(item))
    return "\n".join(text for text in texts if isinstance(text, str)) or "The call failed"


def _block_end(state: _State, block: _Block) -> Iterator[LLMEvent]:
    if block.kind == "text" and block.begun:
        yield TextEnd(block.id)
    elif block.kind == "thinking":
        yield ReasoningEnd(block.id, block.metadata)
    elif block.kind == "call" and not block.ended:
        block.ended = True
        yield ToolInputEnd(block.id, "".join(block.pieces))
        if block.hosted:
            # The provider executes it now: its result may be the next block.
            made = _made(block, cut=False)
            if isinstance(made, ToolCall):
                state.unanswered.add(block.id)
            yield made


def _close_prose(state: _State) -> Iterator[LLMEvent]:
    for index, block in tuple(state.open.items()):
        if block.kind != "call":
            del state.open[index]
            yield from _block_end(state, block)


def _message_delta(state: _State, event: Event) -> Iterator[LLMEvent]:
    stop_reason = event.delta.stop_reason if event.delta else None
    if not stop_reason or state.reason is not None:
        return
    for block in state.open.values():
        yield from _block_end(state, block)
    state.open.clear()
    reason = _REASONS.get(stop_reason, "unknown")
    cut = reason in _CUT_REASONS
    wanted = [call for call in state.calls if not call.hosted]
    for call in _waiting(state):
        yield _made(call, cut=cut)
    state.reason = "tool-calls" if wanted and not cut else reason
    state.paused = stop_reason in _PAUSES and not wanted


def _waiting(state: _State) -> list[_Block]:
    """Calls for this program that were not passed on yet, in order."""
    return [call for call in state.calls if not call.hosted and not call.emitted]


def _made(call: _Block, *, cut: bool) -> ToolCall | ToolInputInvalid:
    call.emitted = True
    text = "".join(call.pieces)
    native: ProviderMetadata | None = None
    if call.server_name is not None:
        native = {NAMESPACE: {"type": MCP_CALL, "serverName": call.server_name}}
    return tool_input.parse_call(
        call.id, call.name, text, cut=cut, hosted=call.hosted, metadata=native
    )


def _message_stop(state: _State) -> tuple[LLMEvent, ...]:
    if state.reason is not None:
        return (_finish(state, state.reason),)
    # Some servers give no stop reason. An input that is not whole is the model's to make again.
    wanted = [call for call in state.calls if not call.hosted]
    ended = [event for block in state.open.values() for event in _block_end(state, block)]
    state.open.clear()
    made = [_made(call, cut=True) for call in wanted]
    return (*ended, *made, _finish(state, "tool-calls" if wanted else "unknown"))


def _finish(state: _State, reason: FinishReason) -> Finish:
    return Finish(reason, wire.usage_of(state.usage), paused=state.paused)


def _provider_error(event: Event, data: bytes) -> ProviderError:
    detail = error_body.detail_of(codec.decode_any(event.error or data))
    text = f"{detail.code}: {detail.text}" if detail.code else detail.text
    return ProviderError(message=text, reason=detail.reason())
