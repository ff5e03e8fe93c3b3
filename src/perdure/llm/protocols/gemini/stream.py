"""Google Gemini: the response side, one chunk at a time.

The hot path of every turn: a chunk is decoded directly into a typed struct. Calls come complete.
Some models send a finish reason in every chunk, and none marks the end, so the end of the stream
ends the answer. Data that must be sent back to the same model, mainly signatures, is kept as
provider metadata. Secrets are removed from messages later.

Invariant: a tool call is emitted only at the end, and only if a finish reason came; a text or
reasoning part ends before the next part starts.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import field

from perdure.llm.encoding import call_id, provider_json, shared, tool_input
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
    ToolInputStart,
)
from perdure.llm.http import error_body
from perdure.llm.message import ToolResult
from perdure.llm.protocols.gemini import events as wire
from perdure.llm.protocols.gemini.events import Chunk, CodeResult, Part
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import State, Value

NAMESPACE: Final = "google"
"""The metadata namespace of this protocol."""

CODE_TOOL: Final = "code_execution"
IMAGE_TOOL: Final = "image_generation"

# Parts of the provider's own work (API reference, Part). Each goes back as it came.
CODE: Final = "executableCode"
CODE_RESULT: Final = "codeExecutionResult"
IMAGE: Final = "inlineData"
TOOL_CALL: Final = "toolCall"
TOOL_RESPONSE: Final = "toolResponse"

_REASONS: Final[dict[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "BLOCKLIST": "content-filter",
    "IMAGE_PROHIBITED_CONTENT": "content-filter",
    "IMAGE_RECITATION": "content-filter",
    "IMAGE_SAFETY": "content-filter",
    "LANGUAGE": "content-filter",
    "MODEL_ARMOR": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "RECITATION": "content-filter",
    "SAFETY": "content-filter",
    "SPII": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "MISSING_THOUGHT_SIGNATURE": "error",
    "NO_IMAGE": "error",
    "TOO_MANY_TOOL_CALLS": "error",
    "UNEXPECTED_TOOL_CALL": "error",
}
_CUT_REASONS: Final = frozenset({"length", "content-filter", "error"})
_SUCCESS: Final = "OUTCOME_OK"


class _Call(Value):
    id: str
    name: str
    text: str
    metadata: ProviderMetadata | None


class _State(State):
    text_id: str | None = None
    reasoning_id: str | None = None
    signature: str = ""
    """Signature of the open reasoning."""
    texts: int = 0
    reasonings: int = 0
    calls: list[_Call] = field(default_factory=list[_Call])
    taken: set[str] = field(default_factory=set[str])
    hosted: str | None = None
    """The code without a result yet."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    """The other hosted calls without a result yet: the provider's id -> ours."""
    reason: FinishReason | None = None
    usage: msgspec.Raw = msgspec.Raw()
    """Raw counts of the last chunk. Every chunk has them, so they are decoded at the end."""


def start() -> _State:
    return _State()


def step(state: _State, data: bytes) -> tuple[LLMEvent, ...]:
    """Process one chunk. An error object ends the answer."""
    chunk = wire.decode(data)
    if chunk.is_error:
        return (*_close(state), _provider_error(chunk))
    if chunk.usage_metadata:
        state.usage = chunk.usage_metadata
    if not chunk.candidates:
        return _blocked(state, chunk)
    candidate = chunk.candidates[0]
    parts = candidate.content.parts if candidate.content else None
    if candidate.finish_reason:
        state.reason = _REASONS.get(candidate.finish_reason, "unknown")
    if not parts:
        return ()
    if len(parts) > 1:
        provider_json.require_few(parts, "parts")
    events: list[LLMEvent] = []
    for part in parts:
        _part(state, part, events)
    return tuple(events)


def finish(state: _State) -> tuple[LLMEvent, ...]:
    """End the stream: complete only if a finish reason came."""
    if state.reason is None:
        raise provider_json.incomplete()
    cut = state.reason in _CUT_REASONS
    made = [
        tool_input.parse_call(call.id, call.name, call.text, cut=cut, metadata=call.metadata)
        for call in state.calls
    ]
    reason: FinishReason = "tool-calls" if made and not cut else state.reason
    return (*_close(state), *made, Finish(reason, wire.usage_of(state.usage)))


def _part(state: _State, part: Part, events: list[LLMEvent]) -> None:
    if part.function_call is not None:
        events += _close(state)
        events += _call(state, part)
    elif not part.text and part.hosted:
        events += _close(state)
        events += _hosted(state, part)
    elif part.text is not None:
        if part.thought:
            _reasoning(state, part.text, part.thought_signature, events)
        else:
            _text(state, part.text, part.thought_signature, events)


def _text(state: _State, text: str, signature: str | None, events: list[LLMEvent]) -> None:
    if text:
        if state.text_id is None:
            events += _close(state)
            state.text_id = f"text-{state.texts}"
            state.texts += 1
            events.append(TextStart(state.text_id))
        events.append(TextDelta(state.text_id, text))
    if signature:
        # A text has no metadata, so an empty reasoning part after it keeps the signature.
        events += _close(state)
        _open_reasoning(state, events)
        state.signature = signature
        events += _close(state)


def _reasoning(state: _State, text: str, signature: str | None, events: list[LLMEvent]) -> None:
    if state.reasoning_id is None:
        if not text and not signature:
            return
        events += _close(state)
        _open_reasoning(state, events)
    if text and state.reasoning_id is not None:
        events.append(ReasoningDelta(state.reasoning_id, text))
    if signature:
        state.signature = signature


def _open_reasoning(state: _State, events: list[LLMEvent]) -> None:
    state.reasoning_id = f"reasoning-{state.reasonings}"
    state.reasonings += 1
    events.append(ReasoningStart(state.reasoning_id))


def _close(state: _State) -> tuple[LLMEvent, ...]:
    if state.text_id is not None:
        closed, state.text_id = TextEnd(state.text_id), None
        return (closed,)
    if state.reasoning_id is not None:
        native: JsonObject = {"thoughtSignature": state.signature} if state.signature else {}
        ended = ReasoningEnd(state.reasoning_id, _metadata(native))
        state.reasoning_id, state.signature = None, ""
        return (ended,)
    return ()


def _call(state: _State, part: Part) -> Iterator[LLMEvent]:
    called = part.function_call
    if called is None or not called.name:
        raise provider_json.invalid_output("a tool call without a name")
    native: JsonObject = {}
    if part.thought_signature:
        native["thoughtSignature"] = part.thought_signature
    if called.id:
        native["id"] = called.id
    call = _Call(
        _fresh_id(state, called.id), called.name, wire.text_of(called.args), _metadata(native)
    )
    state.calls.append(call)
    yield ToolInputStart(call.id, call.name)
    if call.text:
        yield ToolInputDelta(call.id, call.text)
    yield ToolInputEnd(call.id, call.text)


def _hosted(state: _State, part: Part) -> Iterator[LLMEvent]:
    """Work of the provider's own: code, an image, or another tool, and what came of it."""
    native: JsonObject = {}
    if part.thought_signature:
        native["thoughtSignature"] = part.thought_signature
    if part.executable_code is not None:
        code = codec.to_json_value(part.executable_code)
        state.hosted = _fresh_id(state, None)
        yield from _hosted_call(state.hosted, CODE_TOOL, code, native | {"part": CODE})
    elif part.code_execution_result is not None:
        yield from _code_result(state, part.code_execution_result, native | {"part": CODE_RESULT})
    elif part.inline_data is not None:
        # A picture in a thought is a draft of the one that follows.
        if part.inline_data.data and not part.thought:
            made, native = _fresh_id(state, None), native | {"part": IMAGE}
            yield from _hosted_call(made, IMAGE_TOOL, {}, native)
            image = codec.to_json_value(part.inline_data)
            yield HostedToolResult(made, ToolResult("json", image), _metadata(native))
    elif part.tool_call:
        called = wire.object_of(part.tool_call)
        made = state.tools[str(called.get("id"))] = _fresh_id(state, None)
        name = str(called.get("toolType") or "tool").lower()
        yield from _hosted_call(made, name, called, native | {"part": TOOL_CALL})
    else:
        came = wire.object_of(part.tool_response)
        asked = state.tools.pop(str(came.get("id")), None)
        if asked is not None:
            native["part"] = TOOL_RESPONSE
            yield HostedToolResult(asked, ToolResult("json", came), _metadata(native))


def _hosted_call(id: str, name: str, value: JsonObject, native: JsonObject) -> Iterator[LLMEvent]:
    yield ToolInputStart(id, name)
    yield ToolInputEnd(id, shared.json_text(value))
    yield ToolCall(id, name, value, True, _metadata(native))


def _code_result(state: _State, result: CodeResult, native: JsonObject) -> Iterator[LLMEvent]:
    """The result of code. One without code is ignored."""
    if state.hosted is None:
        return
    came = codec.to_json_value(result)
    failed = result.outcome not in (None, _SUCCESS)
    if failed:
        # Only the message of a failure is stored, so the provider's content goes into metadata.
        native["content"] = came
    kind = ToolResult("error" if failed else "json", came)
    yield HostedToolResult(state.hosted, kind, _metadata(native))
    state.hosted = None


def _fresh_id(state: _State, given: str | None) -> str:
    chosen = call_id.free_id(given, state.taken, len(state.taken), prefix="tool")
    state.taken.add(chosen)
    return chosen


def _blocked(state: _State, chunk: Chunk) -> tuple[LLMEvent, ...]:
    """The end of an answer to a refused prompt."""
    feedback = chunk.prompt_feedback
    if feedback is not None and feedback.block_reason:
        state.reason = "content-filter"
    return ()


def _provider_error(chunk: Chunk) -> ProviderError:
    detail = error_body.detail_of_body(bytes(chunk.error))
    text = f"{detail.code}: {detail.text}" if detail.code else detail.text
    return ProviderError(message=text, reason=detail.reason())


def _metadata(native: JsonObject) -> ProviderMetadata | None:
    return {NAMESPACE: native} if native else None
