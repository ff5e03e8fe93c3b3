"""Bedrock Converse: the response side, one event at a time.

The hot path of every turn: an event is decoded directly into a typed struct. Content comes in
numbered blocks; only calls and hosted results have a start event. The stop reason and the counts
come in two events at the end and make one Finish. Data that is needed to send reasoning and hosted
results back to the same model is kept as provider metadata.

Invariant: a tool call is emitted only after the provider's stop reason; a text or reasoning part
ends before the next part starts.
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import field

from perdure.llm.encoding import call_id, provider_json, tool_input
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
from perdure.llm.http.error_body import ErrorDetail
from perdure.llm.message import ToolResult
from perdure.llm.protocols.bedrock import events as wire
from perdure.llm.protocols.bedrock.events import BlockDelta, BlockStart, Event, Metadata
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import State

NAMESPACE: Final = "bedrock"
"""The metadata namespace of this protocol."""

HOSTED: Final = "server_tool_use"
"""The type of a hosted call."""

_REASONS: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content-filter",
    "guardrail_intervened": "content-filter",
    "refusal": "content-filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_CUT_REASONS: Final = frozenset({"length", "content-filter", "error"})

_Kind = Literal["text", "reasoning", "call", "result"]


class _Block(State):
    kind: _Kind
    id: str = ""
    name: str = ""
    hosted: bool = False
    ended: bool = False
    failed: bool = False
    pieces: list[str] = field(default_factory=list[str])
    """The input of a call, or the signature of reasoning."""
    redacted: list[str] = field(default_factory=list[str])
    content: list[JsonValue] = field(default_factory=list[JsonValue])
    """Content of a hosted result."""

    @property
    def metadata(self) -> ProviderMetadata | None:
        native: JsonObject = {}
        if self.redacted:
            native["redactedData"] = "".join(self.redacted)
        elif self.pieces:
            native["signature"] = "".join(self.pieces)
        return {NAMESPACE: native} if native else None


class _State(State):
    open: dict[int, _Block] = field(default_factory=dict[int, _Block])
    texts: int = 0
    reasonings: int = 0
    calls: list[_Block] = field(default_factory=list[_Block])
    unanswered: set[str] = field(default_factory=set[str])
    """Hosted calls without a result yet."""
    reason: FinishReason | None = None
    metadata: Metadata | None = None


def start() -> _State:
    return _State()


def step(state: _State, data: bytes) -> tuple[LLMEvent, ...]:
    """Process one event. An exception ends the answer; unknown events are ignored."""
    event = wire.decode(data)
    if event.content_block_delta is not None:
        return () if state.reason else _delta(state, event.content_block_delta)
    if event.content_block_start is not None:
        return () if state.reason else tuple(_block_start(state, event.content_block_start))
    if event.content_block_stop is not None:
        block = state.open.pop(event.content_block_stop.content_block_index, None)
        return () if block is None else tuple(_block_end(state, block))
    if event.message_stop is not None:
        return tuple(_message_stop(state, event.message_stop.stop_reason or "unknown"))
    if event.metadata is not None:
        state.metadata = event.metadata
        return (_finish(state, state.reason),) if state.reason else ()
    if event.exception is not None:
        return (*_close_prose(state), _provider_error(event.exception, event))
    return ()


def finish(state: _State) -> tuple[LLMEvent, ...]:
    """End a stream without counts: complete only if a stop reason came."""
    if state.reason is None:
        raise provider_json.incomplete()
    return (_finish(state, state.reason),)


def _delta(state: _State, event: BlockDelta) -> tuple[LLMEvent, ...]:
    delta = event.delta
    if delta is None:
        return ()
    block = state.open.get(event.content_block_index)
    if delta.text:
        if block is not None and block.kind == "text":
            return (TextDelta(block.id, delta.text),)
        opened, block = _begin(state, event.content_block_index, "text")
        return (*opened, TextDelta(block.id, delta.text))
    if delta.tool_use is not None:
        return _input(block, event.content_block_index, delta.tool_use.input or "")
    if delta.reasoning_content is not None:
        return _reasoning(state, event.content_block_index, block, delta.reasoning_content)
    if delta.tool_result and block is not None and block.kind == "result":
        block.content += delta.tool_result
    return ()


def _begin(state: _State, index: int, kind: _Kind) -> tuple[tuple[LLMEvent, ...], _Block]:
    """Start a text or reasoning block with its first delta."""
    closed = [*_close_prose(state), *_replaced(state, index)]
    if kind == "text":
        block = _Block("text", f"text-{state.texts}")
        state.texts += 1
        started: LLMEvent = TextStart(block.id)
    else:
        block = _Block("reasoning", f"reasoning-{state.reasonings}")
        state.reasonings += 1
        started = ReasoningStart(block.id)
    state.open[index] = block
    return (*closed, started), block


def _input(block: _Block | None, index: int, text: str) -> tuple[LLMEvent, ...]:
    if block is None or block.kind != "call":
        raise LLMError(
            "invalid-provider-output",
            f"The provider continued content block {index}, which is not an open call",
        )
    if not text:
        return ()
    block.pieces.append(text)
    return (ToolInputDelta(block.id, text),)


def _reasoning(
    state: _State, index: int, block: _Block | None, piece: wire.ReasoningPiece
) -> tuple[LLMEvent, ...]:
    if not (piece.text or piece.signature or piece.redacted_content):
        return ()
    opened: tuple[LLMEvent, ...] = ()
    if block is None or block.kind != "reasoning":
        opened, block = _begin(state, index, "reasoning")
    if piece.signature:
        block.pieces.append(piece.signature)
    if piece.redacted_content:
        block.redacted.append(piece.redacted_content)
    return (*opened, ReasoningDelta(block.id, piece.text)) if piece.text else opened


def _block_start(state: _State, event: BlockStart) -> Iterator[LLMEvent]:
    start = event.start
    if start is None or (start.tool_use is None and start.tool_result is None):
        return
    yield from _close_prose(state)
    yield from _replaced(state, event.content_block_index)
    if start.tool_use is not None:
        block = _call_start(state, start.tool_use)
        yield ToolInputStart(block.id, block.name)
    else:
        result = start.tool_result or wire.ToolResult()
        failed = result.status == "error"
        block = _Block("result", result.tool_use_id or "", result.type or "", failed=failed)
    state.open[event.content_block_index] = block


def _call_start(state: _State, start: wire.ToolUse) -> _Block:
    if not start.name:
        raise provider_json.invalid_output("a tool call without a name")
    hosted = start.type == HOSTED
    block = _Block("call", _fresh_id(state, start.tool_use_id), start.name, hosted)
    state.calls.append(block)
    return block


def _fresh_id(state: _State, given: str | None) -> str:
    return call_id.free_id(given, {call.id for call in state.calls}, len(state.calls))


def _replaced(state: _State, index: int) -> Iterator[LLMEvent]:
    """End a block whose index a new one takes."""
    before = state.open.pop(index, None)
    if before is not None:
        yield from _block_end(state, before)


def _block_end(state: _State, block: _Block) -> Iterator[LLMEvent]:
    if block.kind == "text":
        yield TextEnd(block.id)
    elif block.kind == "reasoning":
        yield ReasoningEnd(block.id, block.metadata)
    elif block.kind == "result":
        yield from _hosted_result(state, block)
    elif not block.ended:
        block.ended = True
        yield ToolInputEnd(block.id, "".join(block.pieces))
        if block.hosted:
            # The provider executes it now: its result may be the next block.
            made = _made(block, cut=False)
            if isinstance(made, ToolCall):
                state.unanswered.add(block.id)
            yield made


def _hosted_result(state: _State, block: _Block) -> Iterator[LLMEvent]:
    """A hosted result. Results of unknown calls and second results are ignored."""
    if block.id not in state.unanswered:
        return
    state.unanswered.remove(block.id)
    native: JsonObject = {"type": block.name}
    if block.failed:
        # Only the message of a failure is stored, so the provider's content goes into metadata.
        native |= {"status": "error", "content": block.content}
    result = ToolResult("error" if block.failed else "json", block.content)
    yield HostedToolResult(block.id, result, {NAMESPACE: native})


def _close_prose(state: _State) -> Iterator[LLMEvent]:
    for index, block in tuple(state.open.items()):
        if block.kind != "call":
            del state.open[index]
            yield from _block_end(state, block)


def _message_stop(state: _State, stop_reason: str) -> Iterator[LLMEvent]:
    if state.reason is not None:
        return
    for block in state.open.values():
        yield from _block_end(state, block)
    state.open.clear()
    reason = _REASONS.get(stop_reason, "unknown")
    cut = reason in _CUT_REASONS
    wanted = [call for call in state.calls if not call.hosted]
    for call in wanted:
        yield _made(call, cut=cut)
    state.reason = "tool-calls" if wanted and not cut else reason
    if state.metadata is not None:
        yield _finish(state, state.reason)


def _made(call: _Block, *, cut: bool) -> ToolCall | ToolInputInvalid:
    text = "".join(call.pieces)
    return tool_input.parse_call(call.id, call.name, text, cut=cut, hosted=call.hosted)


def _finish(state: _State, reason: FinishReason) -> Finish:
    return Finish(reason, wire.usage_of(state.metadata) if state.metadata else None)


def _provider_error(kind: str, event: Event) -> ProviderError:
    detail = error_body.detail_of_body(bytes(event.payload))
    return ProviderError(
        message=f"{kind}: {detail.text}",
        reason=ErrorDetail(detail.text, f"{kind} {detail.code}").reason(),
    )
