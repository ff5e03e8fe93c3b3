"""Streams as Bedrock sends them, frame by frame, and one long answer that has everything in it."""

import struct
from collections.abc import Sequence
from zlib import crc32

from perdure.llm.aws.event_stream import AwsFrames
from perdure.llm.event import LLMEvent
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

PADDING = "abcdefghijk"


def framed(headers: dict[str, str], payload: bytes) -> bytes:
    """One binary frame: a head with a checksum, headers, payload, and a checksum of it all."""
    block = b"".join(
        bytes((len(name),))
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value.encode()))
        + value.encode()
        for name, value in headers.items()
    )
    head = struct.pack(">II", 16 + len(block) + len(payload), len(block))
    whole = head + struct.pack(">I", crc32(head)) + block + payload
    return whole + struct.pack(">I", crc32(whole))


def event(kind: str, **fields: JsonValue) -> bytes:
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return framed(headers, codec.encode(fields | {"p": PADDING}))


def exception(kind: str, message: str) -> bytes:
    headers = {
        ":exception-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return framed(headers, codec.encode({"message": message}))


def unmodelled(code: str, message: str) -> bytes:
    headers = {":message-type": "error", ":error-code": code, ":error-message": message}
    return framed(headers, b"")


def begin() -> bytes:
    return event("messageStart", role="assistant")


def piece(index: int, **delta: JsonValue) -> bytes:
    return event("contentBlockDelta", contentBlockIndex=index, delta=delta)


def closed(index: int) -> bytes:
    return event("contentBlockStop", contentBlockIndex=index)


def opened(index: int, **start: JsonValue) -> bytes:
    return event("contentBlockStart", contentBlockIndex=index, start=start)


def text(index: int, *deltas: str) -> list[bytes]:
    return [*(piece(index, text=delta) for delta in deltas), closed(index)]


def call(index: int, id: str, name: str, *deltas: str, **fields: JsonValue) -> list[bytes]:
    use: JsonObject = {"toolUseId": id, "name": name} | fields
    pieces = [piece(index, toolUse={"input": delta}) for delta in deltas]
    return [opened(index, toolUse=use), *pieces, closed(index)]


def reasoning(index: int, *deltas: str, signature: Sequence[str] = ("c2ln",)) -> list[bytes]:
    pieces = [piece(index, reasoningContent={"text": delta}) for delta in deltas]
    signed = [piece(index, reasoningContent={"signature": part}) for part in signature]
    return [*pieces, *signed, closed(index)]


def reason(why: str) -> bytes:
    return event("messageStop", stopReason=why)


def counts(**usage: JsonValue) -> bytes:
    counted: JsonObject = {"inputTokens": 25, "outputTokens": 15, "totalTokens": 40} | usage
    return event("metadata", usage=counted, metrics={"latencyMs": 420})


def step_all(frames: Sequence[bytes]) -> list[LLMEvent]:
    """What comes of whole frames, without the end of the stream."""
    reader, state = AwsFrames(1_000_000), BEDROCK_CONVERSE.start()
    read_frames = [data for frame in frames for data in reader.feed(frame)]
    return [made for data in read_frames for made in BEDROCK_CONVERSE.step(state, data)]


READ, GLOB = "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "tooluse_8HxzTqgqQ3yK2M1m0pWcVw"
SEARCH = "tooluse_7fQ2mZ0bTq6L1sXyVtRk4A"
FOUND: JsonValue = [{"text": "It is raining."}, {"json": {"sources": ["https://example.org/a"]}}]

TEXT: Sequence[bytes] = (
    begin(),
    *text(0, "Hel", "lo"),
    reason("end_turn"),
    counts(),
)
HOSTED: Sequence[bytes] = (
    begin(),
    *call(0, SEARCH, "nova_grounding", '{"que', 'ry":"x"}', type="server_tool_use"),
    opened(1, toolResult={"toolUseId": SEARCH, "type": "nova_grounding_result"}),
    piece(1, toolResult=FOUND[:1]),
    piece(1, toolResult=FOUND[1:]),
    closed(1),
    piece(2, citation={"location": {"web": {"url": "https://example.org/a"}}}),
    *text(2, "Found."),
    reason("end_turn"),
    counts(),
)
EVERYTHING: Sequence[bytes] = (
    begin(),
    *reasoning(0, "Let me ", "see.", signature=("RXJ", "vQg==")),
    piece(1, reasoningContent={"redactedContent": "RW1JdA=="}),
    closed(1),
    *text(2, "Grüße 🌍, ", "now the files."),
    *call(3, READ, "read", "", '{"path":', '"ä.txt"}'),
    *call(4, GLOB, "glob", '{"pattern":"*"}'),
    reason("tool_use"),
    counts(inputTokens=70, outputTokens=50, cacheReadInputTokens=30, cacheWriteInputTokens=8),
)
RECORDINGS = {"text": TEXT, "hosted": HOSTED, "everything": EVERYTHING}
