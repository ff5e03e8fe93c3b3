"""OpenAI Responses: the response side, one event at a time.

The hot path of every turn: a delta is one typed decode, one comparison and one value. Items are
matched by their output index, because some servers change an item's id in every event. Secrets are
removed from messages later.

Invariant: a tool call is emitted only when its item or the answer is done; a text or reasoning
block ends before the next part starts; ids are unique within the answer.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import field

from perdure.llm.encoding import provider_json, tool_input
from perdure.llm.event import (
    Finish,
    FinishReason,
    HostedToolResult,
    LLMEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from perdure.llm.protocols.openai_responses import events as wire
from perdure.llm.protocols.openai_responses import native
from perdure.llm.protocols.openai_responses.events import Frame, Item
from perdure.llm.protocols.openai_responses.native import NativeItem
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import State

BlockKind = Literal["text", "reasoning"]


class _Block(State):
    """The open text or reasoning block."""

    kind: BlockKind
    id: str
    output: object
    part: object


class _Call(State):
    id: str
    name: str
    item_id: str | None
    arguments: list[str] = field(default_factory=list[str])
    settled: bool = False


class _State(State):
    block: _Block | None = None
    calls: dict[int, _Call] = field(default_factory=dict[int, _Call])
    item_ids: dict[int, str] = field(default_factory=dict[int, str])
    streamed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Parts with streamed deltas: (output index, content index)."""
    taken: set[str] = field(default_factory=set[str])
    """Ids in use."""
    stored: bool = False
    refused: bool = False
    ended: bool = False


_Events = list[LLMEvent]


def start() -> _State:
    return _State()


def step(state: _State, data: bytes) -> tuple[LLMEvent, ...]:
    """Process one event. Completed, incomplete, failed and error end the answer."""
    if state.ended or data == b"[DONE]":
        return ()
    frame = wire.frame_of(data)
    kind = frame.type
    events: _Events = []
    if isinstance(kind, str):
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(state, frame, events)
        elif kind in _FAILURES:
            _fail(state, frame, data, events)
    elif frame.error:
        _fail(state, frame, data, events)
    else:
        raise provider_json.invalid_output("an event without a type")
    return tuple(events)


def finish(state: _State) -> tuple[LLMEvent, ...]:
    """End a stream without a final event: the answer is incomplete."""
    del state
    raise provider_json.incomplete()


# ---- text and reasoning -------------------------------------------------------------------------


def _text_delta(state: _State, frame: Frame, events: _Events) -> None:
    block, text = state.block, frame.delta
    if not isinstance(text, str):
        raise provider_json.invalid_output("a text delta that is not a text")
    if not text:
        return
    if (
        block is None
        or block.part != frame.content_index
        or block.output != frame.output_index
        or block.kind != "text"
    ):
        block = _open(state, "text", (frame.output_index, frame.content_index), events)
    events.append(TextDelta(block.id, text))


def _refusal_delta(state: _State, frame: Frame, events: _Events) -> None:
    state.refused = True
    _text_delta(state, frame, events)


def _summary_delta(state: _State, frame: Frame, events: _Events) -> None:
    _reasoning(state, frame, frame.summary_index, events)


def _reasoning_delta(state: _State, frame: Frame, events: _Events) -> None:
    _reasoning(state, frame, frame.content_index, events)


def _reasoning(state: _State, frame: Frame, part: object, events: _Events) -> None:
    block, output, text = state.block, frame.output_index, frame.delta
    if not isinstance(text, str):
        raise provider_json.invalid_output("a reasoning delta that is not a text")
    if not text:
        return
    if block is None or block.part != part or block.output != output or block.kind != "reasoning":
        block = _open(state, "reasoning", (output, part), events)
    events.append(ReasoningDelta(block.id, text))


def _open(state: _State, kind: BlockKind, at: tuple[object, object], events: _Events) -> _Block:
    place, index = _index(at[0]), _index(at[1])
    _close(state, events)
    state.streamed.add((place, index))
    item_id = state.item_ids.get(place)
    if kind == "text":
        block = _Block(kind, _fresh(state, item_id or f"text-{place}"), *at)
        events.append(TextStart(block.id))
    else:
        wanted = f"{item_id or f'reasoning-{place}'}:{index}"
        block = _Block(kind, _fresh(state, wanted), *at)
        events.append(ReasoningStart(block.id, _metadata(state, item_id)))
    state.block = block
    return block


def _close(state: _State, events: _Events, metadata: ProviderMetadata | None = None) -> None:
    block, state.block = state.block, None
    if block is None:
        return
    if block.kind == "text":
        events.append(TextEnd(block.id))
    else:
        known = _metadata(state, state.item_ids.get(_index(block.output)))
        events.append(ReasoningEnd(block.id, metadata or known))


# ---- items --------------------------------------------------------------------------------------


def _item_added(state: _State, frame: Frame, events: _Events) -> None:
    kind = wire.part_of(wire.Kind, frame.item, "an output item").type
    if kind not in ("message", "reasoning", "function_call"):
        return
    item = wire.part_of(Item, frame.item, f"a {kind} item")
    place = _index(frame.output_index)
    if item.id:
        state.item_ids[place] = item.id
    if kind == "function_call" and place not in state.calls:
        _begin_call(state, place, item, events)


def _item_done(state: _State, frame: Frame, events: _Events) -> None:
    kind = wire.part_of(wire.Kind, frame.item, "an output item").type
    place = _index(frame.output_index)
    if kind in native.HOSTED:
        _hosted(state, wire.json_of(frame.item, f"a {kind} item"), events)
        return
    if kind not in ("message", "reasoning", "function_call"):
        return
    item = wire.part_of(Item, frame.item, f"a {kind} item")
    if item.id:
        state.item_ids.setdefault(place, item.id)
    if kind == "message":
        _message_done(state, place, item, events)
    elif kind == "reasoning":
        _reasoning_done(state, place, item, events)
    else:
        call = state.calls.get(place) or _begin_call(state, place, item, events)
        _settle(state, call, item, events, cut=item.status == "incomplete")


def _message_done(state: _State, place: int, item: Item, events: _Events) -> None:
    """End the message, emitting the text that was not streamed."""
    for index, piece in enumerate(item.content or ()):
        text = piece.text or piece.refusal
        state.refused = state.refused or bool(piece.refusal)
        if text and (place, index) not in state.streamed:
            block = _open(state, "text", (place, index), events)
            events.append(TextDelta(block.id, text))
    if _is_open(state, "text", place):
        _close(state, events)


def _reasoning_done(state: _State, place: int, item: Item, events: _Events) -> None:
    """End the reasoning with the metadata to send it back, even if none was streamed."""
    for index, piece in enumerate(item.summary or ()):
        if piece.text and (place, index) not in state.streamed:
            block = _open(state, "reasoning", (place, index), events)
            events.append(ReasoningDelta(block.id, piece.text))
    item_id = state.item_ids.get(place)
    sealed = item.encrypted_content
    metadata = _metadata(state, item_id or f"reasoning-{place}", sealed)
    if _is_open(state, "reasoning", place):
        _close(state, events, metadata if item_id or sealed else None)
    elif sealed or (state.stored and item_id):
        _close(state, events)
        block_id = _fresh(state, f"{item_id or f'reasoning-{place}'}:0")
        events += (ReasoningStart(block_id, metadata), ReasoningEnd(block_id, metadata))


def _hosted(state: _State, item: JsonObject, events: _Events) -> None:
    item_id = item.get("id")
    if not isinstance(item_id, str) or not item_id:
        raise provider_json.invalid_output(f"a {item['type']} item without an id")
    _close(state, events)
    metadata = native.write(NativeItem(id=item_id, stored=state.stored))
    call = wire.hosted_call(_fresh(state, item_id), item, metadata)
    events += (call, HostedToolResult(call.id, wire.hosted_result(item), metadata))


# ---- calls --------------------------------------------------------------------------------------


def _begin_call(state: _State, place: int, item: Item, events: _Events) -> _Call:
    if not item.name:
        raise provider_json.invalid_output("a tool call without a name")
    _close(state, events)
    call_id = _fresh(state, item.call_id or item.id or f"call_{place}")
    call = state.calls[place] = _Call(call_id, item.name, item.id)
    events.append(ToolInputStart(call.id, call.name))
    return call


def _arguments_delta(state: _State, frame: Frame, events: _Events) -> None:
    call = state.calls.get(_index(frame.output_index))
    text = frame.delta
    if call is None:
        raise provider_json.invalid_output("arguments of a tool call that it did not begin")
    if not isinstance(text, str):
        raise provider_json.invalid_output("tool arguments that are not a text")
    if text and not call.settled:
        call.arguments.append(text)
        events.append(ToolInputDelta(call.id, text))


def _settle(state: _State, call: _Call, item: Item | None, events: _Events, *, cut: bool) -> None:
    if call.settled:
        return
    call.settled = True
    final = item.arguments if item is not None else None
    text = final or "".join(call.arguments)
    metadata = _metadata(state, call.item_id or (item.id if item is not None else None))
    _close(state, events)
    events.append(ToolInputEnd(call.id, text))
    events.append(tool_input.parse_call(call.id, call.name, text, cut=cut, metadata=metadata))


# ---- the end ------------------------------------------------------------------------------------


def _created(state: _State, frame: Frame, events: _Events) -> None:
    del events
    state.stored = wire.response_of(frame).store is True


def _completed(state: _State, frame: Frame, events: _Events) -> None:
    reason: FinishReason = "content-filter" if state.refused else "stop"
    _end(state, frame, "tool-calls" if state.calls else reason, events, cut=False)


def _incomplete(state: _State, frame: Frame, events: _Events) -> None:
    _end(state, frame, wire.incomplete_reason(wire.response_of(frame)), events, cut=True)


def _end(state: _State, frame: Frame, reason: FinishReason, events: _Events, *, cut: bool) -> None:
    usage = wire.usage_of(wire.response_of(frame))
    _close(state, events)
    for call in state.calls.values():
        _settle(state, call, None, events, cut=cut)
    events.append(Finish(reason, usage))
    state.ended = True


def _fail(state: _State, frame: Frame, data: bytes, events: _Events) -> None:
    _close(state, events)
    if frame.response and frame.type != "error":
        error = wire.response_of(frame).error
        error_value = wire.json_of(error, "an error") if error else None
    else:
        error_value = wire.json_of(data, "an error")
    events.append(wire.provider_error(error_value))
    state.ended = True


# ---- small steps --------------------------------------------------------------------------------


def _is_open(state: _State, kind: BlockKind, place: int) -> bool:
    block = state.block
    return block is not None and block.kind == kind and _index(block.output) == place


def _index(value: object) -> int:
    """An index; 0 for servers that send none."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    raise provider_json.invalid_output("a place in the answer that is not a number")


def _metadata(
    state: _State, item_id: str | None, encrypted: str | None = None
) -> ProviderMetadata | None:
    if not item_id:
        return None
    return native.write(NativeItem(id=item_id, stored=state.stored, encrypted=encrypted))


def _fresh(state: _State, wanted: str) -> str:
    provider_json.require_few(state.taken, "parts")
    chosen, number = wanted, 1
    while chosen in state.taken:
        number += 1
        chosen = f"{wanted}-{number}"
    state.taken.add(chosen)
    return chosen


_FAILURES: Final = frozenset({"error", "response.failed", "response.cancelled"})
_HANDLERS: Final[Mapping[str, Callable[[_State, Frame, _Events], None]]] = {
    "response.output_text.delta": _text_delta,
    "response.refusal.delta": _refusal_delta,
    "response.reasoning_summary_text.delta": _summary_delta,
    "response.reasoning_text.delta": _reasoning_delta,
    "response.function_call_arguments.delta": _arguments_delta,
    "response.output_item.added": _item_added,
    "response.output_item.done": _item_done,
    "response.created": _created,
    "response.completed": _completed,
    "response.incomplete": _incomplete,
}
