"""How Gemini says what every provider says, and what only Gemini says."""

from collections.abc import Sequence

from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import Reason
from perdure.llm.event import Finish, ToolCall, Usage
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.route import Credential
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.gemini import recordings as wire
from tests.contract.llm.wire import SECRET, Wire, asked, spoken, thought

COUNTED = Usage(input=25, output=15)
TOO_LONG = "The input token count (9) exceeds the maximum number of tokens allowed (8)."


def text(_: int, *deltas: str) -> list[bytes]:
    """A chunk has no index: what is said belongs to what was said before it."""
    return [wire.chunk(wire.said(delta)) for delta in deltas]


def call(_: int, id: str | None, name: str, *pieces: str) -> list[bytes]:
    """A call comes whole, with its input as a value."""
    raw = "".join(pieces)
    args: JsonValue = codec.decode_any(raw) if raw else None
    return [wire.chunk(wire.call(name, args, id=id or ""))]


def ended(**usage: JsonValue) -> list[bytes]:
    return [wire.chunk(why="STOP", **usage)]


def refused(code: int, status: str, message: str) -> JsonObject:
    return codec.decode_any(wire.error(code, status, message))


_ERRORS: Sequence[tuple[int, str, str, Reason]] = (
    (503, "UNAVAILABLE", "The model is overloaded.", "overload"),
    (500, "INTERNAL", "An internal error has occurred.", "provider-internal"),
    (504, "DEADLINE_EXCEEDED", "Deadline expired.", "provider-internal"),
    (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted.", "rate-limit"),
    (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", "quota-exceeded"),
    (400, "INVALID_ARGUMENT", TOO_LONG, "overflow"),
    (400, "INVALID_ARGUMENT", "Request contains an invalid argument.", "invalid-request"),
    (403, "PERMISSION_DENIED", "no", "authentication"),
    (404, "NOT_FOUND", "no such model", "invalid-request"),
)
_REFUSALS: Sequence[tuple[int, str, str, Reason]] = (
    (400, "INVALID_ARGUMENT", TOO_LONG, "overflow"),
    (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", "invalid-request"),
    (403, "PERMISSION_DENIED", "Method doesn't allow this caller.", "authentication"),
    (404, "NOT_FOUND", "models/x is not found", "invalid-request"),
    (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", "quota-exceeded"),
)
_SILENT: list[JsonObject] = [
    {},
    {"error": None},
    {"candidates": []},
    {"candidates": None},
    {"candidates": [{}]},
    {"candidates": [{"content": {}}]},
    {"candidates": [{"content": {"parts": [{}]}}]},
    {"candidates": [{"content": {"parts": [{"novelty": 1}]}, "groundingMetadata": {"a": 1}}]},
    {"candidates": [{"content": {"parts": [{"text": ""}, {"text": "", "thought": True}]}}]},
    {"promptFeedback": {}},
    {"new": {"stuff": [1]}},
]

WIRE = Wire(
    offsets="byte offsets, Gemini",
    protocol=GEMINI,
    base_path="/v1beta",
    facts=ModelFacts(name="gemini-3-pro"),
    credential=Credential(SECRET, "x-goog-api-key"),
    body_of=wire.body_of,
    text=text,
    half=text(0, "half"),
    call=call,
    stop=lambda why: [wire.chunk(why=why)],
    stops={
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "SAFETY": "content-filter",
        "RECITATION": "content-filter",
        "PROHIBITED_CONTENT": "content-filter",
        "BLOCKLIST": "content-filter",
        "SPII": "content-filter",
        "IMAGE_SAFETY": "content-filter",
        "MALFORMED_FUNCTION_CALL": "error",
        "UNEXPECTED_TOOL_CALL": "error",
        "OTHER": "unknown",
        "SOMETHING_NEW": "unknown",
    },
    for_calls="STOP",
    counted=COUNTED,
    counted_at_reason=COUNTED,
    everything=wire.EVERYTHING,
    recordings=wire.RECORDINGS,
    everything_is=[
        *thought(
            "reasoning-0",
            "Let me ",
            "see.",
            kept={"google": {"thoughtSignature": "dGhvdWdodA=="}},
        ),
        *spoken("text-0", "Grüße 🌍, ", "now the files."),
        *asked("f1", "read", '{"path":"ä.txt"}'),
        *asked("tool_1", "glob", '{"pattern":"*"}'),
        *thought("reasoning-1", kept={"google": {"thoughtSignature": "ZW5k"}}),
        ToolCall(
            "f1",
            "read",
            {"path": "ä.txt"},
            metadata={"google": {"thoughtSignature": "Y2FsbA==", "id": "f1"}},
        ),
        ToolCall("tool_1", "glob", {"pattern": "*"}),
        Finish("tool-calls", Usage(input=70, output=30, reasoning=20, cache_read=30)),
    ],
    cut_call=(wire.chunk(wire.call("bash"), why="MAX_TOKENS"),),
    error=lambda message: wire.error(503, "UNAVAILABLE", message),
    errors=[
        (wire.error(code, status, said), f"{code} {status}: {said}", reason)
        for code, status, said, reason in _ERRORS
    ],
    refusals=[
        (code, refused(code, status, said), reason) for code, status, said, reason in _REFUSALS
    ],
    counts=[
        (ended(), COUNTED),
        (ended(cachedContentTokenCount=99), Usage(cache_read=25, output=15)),
        (ended(toolUsePromptTokenCount=5), Usage(input=30, output=15)),
        (ended(thoughtsTokenCount=7), Usage(input=25, output=15, reasoning=7)),
        (ended(candidatesTokenCount=None), Usage(input=25)),
        (ended(promptTokenCount=-4), Usage(output=15)),
        (ended(promptTokenCount="many"), None),
    ],
    silent=[codec.encode(frame) for frame in _SILENT],
    junk=[
        b"[DONE]",
        b'{"candidates":5}',
        b'{"candidates":[{"content":{"parts":[{"text":7}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"text":"\xc3\x28"}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}',
        b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x","args":"\xff"}}]}}]}',
        b'{"error":' + b"[" * 100_000,
    ],
    unsigned=(wire.chunk(wire.thought("hm"), why="MAX_TOKENS"),),
    hosted_once=(
        wire.chunk(
            {"codeExecutionResult": wire.RAN},
            {"executableCode": wire.CODE},
            {"codeExecutionResult": wire.RAN},
            {"codeExecutionResult": wire.RAN},
            why="STOP",
        ),
    ),
)
