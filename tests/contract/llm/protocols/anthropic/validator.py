"""The structural rules by which the Messages API accepts or refuses a request body.

Written from its documentation and from its refusals, not from the encoder. `faults` names all that
would be refused; processes of one role count as one turn, as the API reads them.
"""

import base64
import re
from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Final

from perdure.schema.codec import JsonObject

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
HOSTED: Final = {"server_tool_use", "mcp_tool_use"}
SERVER_ID: Final = re.compile(r"(srv|mcp)toolu_[a-zA-Z0-9_]+")
BODY_BYTES_MAX: Final = 32 * 1024 * 1024
IMAGE_CHARS_MAX: Final = 5 * 1024 * 1024
HINTS_MAX: Final = 4
SIGNS: Final = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
KNOWN: Final = {
    "user": {"text", "image", "document", "tool_result"},
    "system": {"text"},
    "assistant": {"text", "thinking", "redacted_thinking", "compaction"}
    | {"tool_use", "server_tool_use", "mcp_tool_use"},
}


def faults(body: JsonObject, raw: bytes) -> list[str]:
    """Everything the API would refuse `body` for."""
    return [*_head(body, raw), *_roles(body), *_turns(body), *_thinking(body)]


def _head(body: JsonObject, raw: bytes) -> Iterator[str]:
    if len(raw) > BODY_BYTES_MAX:
        yield "the request is too large"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model is missing"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens is missing"
    if raw.count(b'"cache_control":{') > HINTS_MAX:
        yield "too many cache hints"
    for block in body.get("system", ()):
        yield from _block(block, "system")
    names = [tool["name"] for tool in body.get("tools", ())]
    if len(names) != len({*names}) or not all(map(NAME.fullmatch, names)):
        yield "names of tools"
    for tool in body.get("tools", ()):
        schema = tool["input_schema"]
        if schema.get("type") != "object" or {"anyOf", "oneOf", "allOf"} & schema.keys():
            yield "the schema of a tool is no plain object"
    if "tool_choice" in body and not names:
        yield "a choice without tools"


def _roles(body: JsonObject) -> Iterator[str]:
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"]:
        yield "the first message is not the user's"
    if roles[-1:] == ["assistant"]:
        yield "the last message is the assistant's"
    for message in messages:
        if message["role"] not in KNOWN or message.keys() != {"role", "content"}:
            yield "not a message"
        if not message["content"]:
            yield "a message without content"
    for before, now in pairwise(roles):
        if now == "system" and before != "user":
            yield "a system message that does not follow the user"
        if before == "system" and now != "assistant":
            yield "a system message that no answer follows"


def _turns(body: JsonObject) -> Iterator[str]:
    open_calls: set[str] = set()
    seen: set[str] = set()
    for role, group in groupby(body["messages"], key=lambda message: message["role"]):
        blocks = [block for message in group for block in message["content"]]
        for block in blocks:
            yield from _block(block, role)
        if role == "user":
            yield from _answers(blocks, open_calls)
            open_calls = set()
        elif role == "assistant":
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if len(calls) != len({*calls}) or seen & {*calls}:
                yield "tool_use ids must be unique"
            seen |= {*calls}
            open_calls = {*calls}
            yield from _hosted(blocks)
            if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
                yield "the final block cannot be thinking"
    if open_calls:
        yield "calls without results"


def _answers(blocks: list[JsonObject], open_calls: set[str]) -> Iterator[str]:
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        yield "results must come first"
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if sorted(answered) != sorted(open_calls):
        yield f"results {answered} for calls {open_calls}"


def _hosted(blocks: list[JsonObject]) -> Iterator[str]:
    calls = [block["id"] for block in blocks if block["type"] in HOSTED]
    results = [b["tool_use_id"] for b in blocks if b["type"].endswith("_tool_result")]
    if calls != results or not all(map(SERVER_ID.fullmatch, calls)):
        yield "server tools without their results"


def _block(block: JsonObject, role: str) -> Iterator[str]:
    kind = block["type"]
    if kind not in KNOWN[role] and not (role == "assistant" and kind.endswith("_tool_result")):
        yield f"{kind} in a message of {role}"
    match kind:
        case "text" if not block["text"].strip():
            yield "text must have something to read"
        case "thinking" if not block["signature"]:
            yield "thinking without a signature"
        case "image":
            yield from _image(block["source"])
        case "document" if not _is_document(block["source"]):
            yield "a document that is none"
        case "tool_use" if not NAME.fullmatch(block["name"]) or not NAME.fullmatch(block["id"]):
            yield "tool_use with a bad name or id"
        case "tool_use" | "server_tool_use" | "mcp_tool_use" if not isinstance(
            block["input"], dict
        ):
            yield "input is no object"
        case "tool_result":
            yield from _result(block)
        case _:
            pass


def _is_document(source: JsonObject) -> bool:
    kinds = (source["type"], source["media_type"])
    data = base64.b64decode(source["data"], validate=True)
    return kinds == ("base64", "application/pdf") and data.startswith(b"%PDF-")


def _result(block: JsonObject) -> Iterator[str]:
    content = block.get("content", ())
    listed: list[JsonObject] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else content
    )
    if block.get("is_error") and not content:
        yield "content cannot be empty if is_error is true"
    if "content" in block:
        if not listed:
            yield "a result with an empty list"
        for part in listed:
            yield from _block(part, "user")
            if part["type"] == "tool_result":
                yield "a result inside of a result"


def _image(source: JsonObject) -> Iterator[str]:
    if source["type"] == "url":
        if not source["url"].startswith("https://"):
            yield "only https images"
    elif len(source["data"]) > IMAGE_CHARS_MAX:
        yield "image exceeds 5 MB"
    elif not base64.b64decode(source["data"]).startswith(SIGNS[source["media_type"]]):
        yield "image does not match its media type"


def _thinking(body: JsonObject) -> Iterator[str]:
    thinking = body.get("thinking")
    if thinking is None:
        return
    if body.keys() & {"temperature", "top_k", "top_p"}:
        yield "sampling while thinking"
    if body.get("tool_choice", {}).get("type") == "any":
        yield "thinking may not be enabled when a tool is forced"
    if thinking["type"] != "enabled":
        return
    if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        yield "the thinking budget"
    turns = [
        [block for message in group for block in message["content"]]
        for role, group in groupby(body["messages"], key=lambda message: message["role"])
        if role == "assistant"
    ]
    kinds = [block["type"] for block in turns[-1]] if turns else []
    if "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking"):
        yield "the final answer must start with thinking"
