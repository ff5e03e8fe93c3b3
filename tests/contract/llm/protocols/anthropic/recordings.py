"""Streams as Anthropic sends them, and the bytes of one long answer that has everything in it."""

from collections.abc import Sequence

from perdure.llm.event import LLMEvent
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

PING = codec.encode({"type": "ping"})
STOP = codec.encode({"type": "message_stop"})


def begin(**usage: JsonValue) -> bytes:
    counts: JsonObject = {"input_tokens": 25, "output_tokens": 1} | usage
    message: JsonObject = {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    return codec.encode({"type": "message_start", "message": message})


def opened(index: int, type: str, **fields: JsonValue) -> bytes:
    block: JsonObject = {"type": type} | fields
    return codec.encode({"type": "content_block_start", "index": index, "content_block": block})


def piece(index: int, **delta: JsonValue) -> bytes:
    """One delta; its type goes by the name of its one field, as on the wire."""
    (name,) = delta
    kinds = {"partial_json": "input_json_delta", "citation": "citations_delta"}
    kind = kinds.get(name, f"{name}_delta")
    return codec.encode(
        {"type": "content_block_delta", "index": index, "delta": {"type": kind} | delta}
    )


def closed(index: int) -> bytes:
    return codec.encode({"type": "content_block_stop", "index": index})


def reason(why: str | None, **usage: JsonValue) -> bytes:
    body: JsonObject = {
        "type": "message_delta",
        "delta": {"stop_reason": why, "stop_sequence": None},
        "usage": {"output_tokens": 15} | usage,
    }
    return codec.encode(body)


def text(index: int, *deltas: str) -> list[bytes]:
    pieces = [piece(index, text=delta) for delta in deltas]
    return [opened(index, "text", text=""), *pieces, closed(index)]


def call(
    index: int, id: str, name: str, *deltas: str, type: str = "tool_use", **input: JsonValue
) -> list[bytes]:
    pieces = [piece(index, partial_json=delta) for delta in deltas]
    return [opened(index, type, id=id, name=name, input=input), *pieces, closed(index)]


def thinking(index: int, *deltas: str, signature: Sequence[str] = ("c2ln",)) -> list[bytes]:
    pieces = [piece(index, thinking=delta) for delta in deltas]
    signed = [piece(index, signature=part) for part in signature]
    return [opened(index, "thinking", thinking="", signature=""), *pieces, *signed, closed(index)]


def error(type: str, message: str) -> bytes:
    return codec.encode({"type": "error", "error": {"type": type, "message": message}})


def step_all(frames: Sequence[bytes]) -> list[LLMEvent]:
    state = ANTHROPIC_MESSAGES.start()
    return [event for frame in frames for event in ANTHROPIC_MESSAGES.step(state, frame)]


def body_of(frames: Sequence[bytes]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (codec.decode_any(f)["type"].encode(), f) for f in frames
    )


FOUND: JsonValue = [
    {
        "type": "web_search_result",
        "url": "https://example.org/a",
        "title": "A",
        "encrypted_content": "RW5jcnlwdGVk",
        "page_age": None,
    }
]

TEXT: Sequence[bytes] = (
    begin(),
    PING,
    *text(0, "Hel", "lo"),
    reason("end_turn"),
    STOP,
)
HOSTED: Sequence[bytes] = (
    begin(),
    *call(0, "srvtoolu_01A", "web_search", "", '{"que', 'ry":"x"}', type="server_tool_use"),
    opened(1, "web_search_tool_result", tool_use_id="srvtoolu_01A", content=FOUND),
    closed(1),
    opened(2, "text", text="", citations=[]),
    piece(2, citation={"type": "web_search_result_location", "url": "https://example.org/a"}),
    piece(2, text="Found."),
    closed(2),
    reason("end_turn", server_tool_use={"web_search_requests": 1}),
    STOP,
)
EVERYTHING: Sequence[bytes] = (
    begin(input_tokens=70, cache_read_input_tokens=30, cache_creation_input_tokens=8),
    PING,
    *thinking(0, "Let me ", "see.", signature=("RXJ", "vQg==")),
    opened(1, "redacted_thinking", data="RW1JdA=="),
    closed(1),
    *text(2, "Grüße 🌍, ", "now the files."),
    *call(3, "toolu_01AAAAAAAAAAAAAAAAAAAA", "read", "", '{"path":', '"ä.txt"}'),
    *call(4, "toolu_01BBBBBBBBBBBBBBBBBBBB", "glob", '{"pattern":"*"}'),
    reason("tool_use", output_tokens=50, output_tokens_details={"thinking_tokens": 20}),
    STOP,
)
SAID: JsonValue = [{"type": "text", "text": "seen 🌍"}]
MCP: Sequence[bytes] = (
    begin(),
    opened(0, "mcp_tool_use", id="mcptoolu_01A", name="echo", server_name="files", input={}),
    piece(0, partial_json='{"say":"seen 🌍"}'),
    closed(0),
    opened(1, "mcp_tool_result", tool_use_id="mcptoolu_01A", is_error=False, content=SAID),
    closed(1),
    *text(2, "It said so."),
    reason("end_turn"),
    STOP,
)
COMPACTED: Sequence[bytes] = (
    begin(),
    opened(0, "compaction", content=""),
    codec.encode(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "compaction_delta", "content": "So far: grüße."},
        }
    ),
    closed(0),
    *text(1, "Now this."),
    reason("end_turn"),
    STOP,
)
PAUSED: Sequence[bytes] = (
    begin(),
    *call(0, "srvtoolu_01A", "web_search", '{"query":"x"}', type="server_tool_use"),
    opened(1, "web_search_tool_result", tool_use_id="srvtoolu_01A", content=FOUND),
    closed(1),
    *text(2, "One more."),
    *call(3, "srvtoolu_01B", "web_search", '{"query":"y"}', type="server_tool_use"),
    reason("pause_turn"),
    STOP,
)
"""The provider has yet to run its last call."""
RECORDINGS = {
    "text": TEXT,
    "hosted": HOSTED,
    "mcp": MCP,
    "compacted": COMPACTED,
    "paused": PAUSED,
    "everything": EVERYTHING,
}
