"""Streams as OpenAI sends them, event by event, and the answers of each kind."""

from collections.abc import Mapping, Sequence
from itertools import count

from perdure.llm.event import LLMEvent
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

USAGE: JsonObject = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 150,
}
_NUMBERS = count()


def event(type: str, **fields: JsonValue) -> bytes:
    """One event; names come without their `response.`."""
    whole = type if type == "error" else f"response.{type}"
    return codec.encode({"type": whole, "sequence_number": next(_NUMBERS)} | fields)


def response(status: str, **fields: JsonValue) -> JsonObject:
    body: JsonObject = {"id": "resp_1", "object": "response", "status": status, "output": []}
    return body | {"store": False, "error": None, "usage": None} | fields


def created(*, store: bool = False) -> bytes:
    return event("created", response=response("in_progress", store=store))


def completed(usage: JsonValue = USAGE) -> bytes:
    return event("completed", response=response("completed", usage=usage))


def incomplete(reason: str) -> bytes:
    details = {"reason": reason}
    body = response("incomplete", incomplete_details=details, usage=USAGE)
    return event("incomplete", response=body)


def added(index: int, type: str, id: str, **fields: JsonValue) -> bytes:
    item = {"type": type, "id": id, "status": "in_progress"} | fields
    return event("output_item.added", output_index=index, item=item)


def done(index: int, type: str, id: str, **fields: JsonValue) -> bytes:
    item = {"type": type, "id": id, "status": "completed"} | fields
    return event("output_item.done", output_index=index, item=item)


def message(index: int, *deltas: str, id: str = "msg_1", kind: str = "output_text") -> list[bytes]:
    """A whole message item; `kind` is `output_text` or `refusal`."""
    at: JsonObject = {"item_id": id, "output_index": index, "content_index": 0}
    field = "refusal" if kind == "refusal" else "text"
    text = "".join(deltas)
    return [
        added(index, "message", id, role="assistant", content=[]),
        event("content_part.added", part={"type": kind, field: ""}, **at),
        *(event(f"{kind}.delta", delta=delta, logprobs=[], **at) for delta in deltas),
        event(f"{kind}.done", **at, **{field: text}),
        event("content_part.done", part={"type": kind, field: text}, **at),
        done(index, "message", id, role="assistant", content=[{"type": kind, field: text}]),
    ]


def reasoning(index: int, *summaries: Sequence[str], id: str = "rs_1") -> list[bytes]:
    """A whole reasoning item with the deltas of each of its summaries."""
    frames = [added(index, "reasoning", id, summary=[], encrypted_content="begun")]
    for number, deltas in enumerate(summaries):
        at: JsonObject = {"item_id": id, "output_index": index, "summary_index": number}
        part = {"type": "summary_text", "text": "".join(deltas)}
        frames += [
            event("reasoning_summary_part.added", part=part | {"text": ""}, **at),
            *(event("reasoning_summary_text.delta", delta=delta, **at) for delta in deltas),
            event("reasoning_summary_text.done", text="".join(deltas), **at),
            event("reasoning_summary_part.done", part=part, **at),
        ]
    told = [{"type": "summary_text", "text": "".join(deltas)} for deltas in summaries]
    return [*frames, done(index, "reasoning", id, summary=told, encrypted_content="sealed")]


def call(
    index: int,
    name: str,
    *pieces: str,
    id: str = "a",
    call_id: str | None = None,
    final: str | None = None,
    **done_as: JsonValue,
) -> list[bytes]:
    """A whole function call; `final` are the arguments of its end, where they differ."""
    at: JsonObject = {"item_id": f"fc_{id}", "output_index": index}
    whole = "".join(pieces) if final is None else final
    named: JsonObject = {"call_id": f"call_{id}" if call_id is None else call_id, "name": name}
    return [
        added(index, "function_call", f"fc_{id}", arguments="", **named),
        *(event("function_call_arguments.delta", delta=piece, **at) for piece in pieces),
        event("function_call_arguments.done", arguments=whole, **at),
        done(index, "function_call", f"fc_{id}", arguments=whole, **named, **done_as),
    ]


SEARCH: JsonObject = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "perdure"},
}


COMPACTION: JsonObject = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk"}


def hosted(index: int, item: JsonObject) -> list[bytes]:
    at: JsonObject = {"item_id": item["id"], "output_index": index}
    begun = item | {"status": "in_progress"}
    return [
        event("output_item.added", output_index=index, item=begun),
        event("web_search_call.searching", **at),
        event("output_item.done", output_index=index, item=item),
    ]


def step_all(frames: Sequence[bytes]) -> list[LLMEvent]:
    state = OPENAI_RESPONSES.start()
    return [made for frame in frames for made in OPENAI_RESPONSES.step(state, frame)]


def body_of(frames: Sequence[bytes]) -> bytes:
    names = (codec.decode_any(frame)["type"].encode() for frame in frames)
    pairs = zip(names, frames, strict=True)
    return b"".join(b"event: %b\ndata: %b\n\n" % pair for pair in pairs)


EVERYTHING: Sequence[bytes] = (
    created(),
    event("in_progress", response=response("in_progress")),
    *reasoning(0, ("Let me ", "see."), ("Files",)),
    *message(1, "Grüße 🌍, ", "now the files."),
    *hosted(2, SEARCH),
    *call(3, "read", '{"path":', '"ä.txt"}'),
    *call(4, "glob", '{"pattern":"*"}', id="b"),
    completed(),
)

_BASH: JsonObject = {"call_id": "call_a", "name": "bash", "arguments": ""}

RECORDINGS: Mapping[str, Sequence[bytes]] = {
    "everything": EVERYTHING,
    "text": (created(), *message(0, "Hel", "lo"), completed()),
    "compacted": (created(), *hosted(0, COMPACTION), *message(1, "Grüße"), completed()),
    "refusal": (created(), *message(0, "I can", "not.", kind="refusal"), completed()),
    "cut by length": (
        created(),
        added(0, "function_call", "fc_a", **_BASH),
        done(0, "function_call", "fc_a", **_BASH, status="incomplete"),
        incomplete("max_output_tokens"),
    ),
    "failed": (
        created(),
        *message(0, "half"),
        event("failed", response=response("failed", error={"code": "server_error"})),
    ),
    "error": (created(), event("error", code="rate_limit_exceeded", message="Slow down")),
}
