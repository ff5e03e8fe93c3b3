"""Streams as Gemini sends them, and the bytes of one long answer that has everything in it."""

from collections.abc import Sequence

from perdure.llm.event import LLMEvent
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

COUNTS: JsonObject = {"promptTokenCount": 25, "candidatesTokenCount": 15, "totalTokenCount": 40}


def chunk(*parts: JsonObject, why: str | None = None, **usage: JsonValue) -> bytes:
    """One chunk with all the fields that come along; the last one says why it is."""
    content: JsonObject = {"parts": list(parts), "role": "model"}
    candidate: JsonObject = {"content": content, "index": 0}
    if why is not None:
        candidate |= {"finishReason": why, "safetyRatings": []}
    body: JsonObject = {
        "candidates": [candidate],
        "usageMetadata": COUNTS | usage,
        "modelVersion": "gemini-3.1-pro-preview",
        "responseId": "r4nd0m",
    }
    return codec.encode(body)


def said(text: str, **fields: JsonValue) -> JsonObject:
    return {"text": text} | fields


def thought(text: str, **fields: JsonValue) -> JsonObject:
    return {"text": text, "thought": True} | fields


def call(name: str, args: JsonValue = None, *, id: str = "", signature: str = "") -> JsonObject:
    called: JsonObject = {"name": name}
    if args is not None:
        called["args"] = args
    if id:
        called["id"] = id
    part: JsonObject = {"functionCall": called}
    return part | ({"thoughtSignature": signature} if signature else {})


def error(code: int, status: str, message: str) -> bytes:
    return codec.encode({"error": {"code": code, "message": message, "status": status}})


def step_all(frames: Sequence[bytes]) -> list[LLMEvent]:
    """What comes of the chunks, without the end of the stream."""
    state = GEMINI.start()
    return [event for frame in frames for event in GEMINI.step(state, frame)]


def answered(frames: Sequence[bytes]) -> list[LLMEvent]:
    """What comes of a whole stream."""
    state = GEMINI.start()
    events = [event for frame in frames for event in GEMINI.step(state, frame)]
    return [*events, *GEMINI.finish(state)]


def body_of(frames: Sequence[bytes]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % frame for frame in frames)


CODE: JsonObject = {"language": "PYTHON", "code": "print(2+2)"}
RAN: JsonObject = {"outcome": "OUTCOME_OK", "output": "4\n"}

TEXT: Sequence[bytes] = (chunk(said("Hel")), chunk(said("lo"), why="STOP"))
HOSTED: Sequence[bytes] = (
    chunk({"executableCode": CODE}),
    chunk({"codeExecutionResult": RAN}),
    chunk(said("It is 4."), why="STOP"),
)
EVERYTHING: Sequence[bytes] = (
    chunk(thought("Let me ")),
    chunk(thought("see.", thoughtSignature="dGhvdWdodA==")),
    chunk(said("Grüße 🌍, ")),
    chunk(said("now the files.")),
    chunk(
        call("read", {"path": "ä.txt"}, id="f1", signature="Y2FsbA=="),
        call("glob", {"pattern": "*"}),
    ),
    chunk(
        said("", thoughtSignature="ZW5k"),
        why="STOP",
        promptTokenCount=100,
        cachedContentTokenCount=30,
        candidatesTokenCount=30,
        thoughtsTokenCount=20,
    ),
)
PICTURE: JsonObject = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
IMAGE: Sequence[bytes] = (
    chunk({"inlineData": PICTURE | {"data": "ZHJhZnQ="}, "thought": True}),
    chunk(said("Here: ")),
    chunk({"inlineData": PICTURE, "thoughtSignature": "cGljdHVyZQ=="}),
    chunk(said("🌍"), why="STOP"),
)
SEARCHED: JsonObject = {
    "toolType": "GOOGLE_SEARCH_WEB",
    "args": {"queries": ["grüße"]},
    "id": "s1",
}
RESULTS: JsonObject = {
    "toolType": "GOOGLE_SEARCH_WEB",
    "response": {"search_suggestions": "<b>ä</b>"},
    "id": "s1",
}
TOOLS: Sequence[bytes] = (
    chunk({"toolCall": SEARCHED, "thoughtSignature": "c2VhcmNo"}),
    chunk({"toolResponse": RESULTS, "thoughtSignature": "Zm91bmQ="}),
    chunk({"toolResponse": RESULTS}),
    chunk(said("Found."), why="STOP"),
)
RECORDINGS = {
    "text": TEXT,
    "hosted": HOSTED,
    "image": IMAGE,
    "tools": TOOLS,
    "everything": EVERYTHING,
}
