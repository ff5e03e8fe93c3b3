"""The structural rules by which the Converse API accepts or refuses a request body.

Written from its documentation and from its refusals, not from the encoder. `faults` names all that
would be refused.
"""

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from perdure.schema.codec import JsonObject

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENT_NAME: Final = re.compile(r"(?! )(?!.*  )[A-Za-z0-9 ()\[\]-]{1,200}(?<! )")
IMAGE_BYTES_MAX: Final = 3_932_160
HINTS_MAX: Final = 4
SIGNS: Final = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
KNOWN: Final = {
    "user": {"text", "image", "document", "toolResult", "cachePoint"},
    "assistant": {"text", "reasoningContent", "toolUse", "toolResult"},
}
HEAD: Final = {
    "additionalModelRequestFields",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "performanceConfig",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
}


def faults(body: JsonObject, raw: bytes, model: str = "anthropic.claude-opus-4-8") -> list[str]:
    """Everything the API would refuse `body` for."""
    return [
        *_head(body, raw, model),
        *_roles(body),
        *_calls(body),
        *_blocks(body),
        *_thinking(body, model),
    ]


def _head(body: JsonObject, raw: bytes, model: str) -> Iterator[str]:
    if unknown := body.keys() - HEAD:
        yield f"unknown fields {unknown}"
    hints = raw.count(b'"cachePoint"')
    if hints > HINTS_MAX or (hints and "claude" not in model and "nova" not in model):
        yield "cache points"
    for block in body.get("system", ()):
        if "text" in block and not block["text"].strip():
            yield "blank text in system"
    if "toolConfig" in body:
        yield from _tools(body["toolConfig"], model)


def _tools(config: JsonObject, model: str) -> Iterator[str]:
    tools = [tool["toolSpec"] for tool in config["tools"] if "toolSpec" in tool]
    if not tools:
        yield "a tool configuration without tools"
    if "nova" in model and any("cachePoint" in tool for tool in config["tools"]):
        yield "a cache point among the tools"
    for tool in tools:
        if not NAME.fullmatch(tool["name"]) or tool.get("description") == "":
            yield "name or description of a tool"
        schema = tool["inputSchema"]["json"]
        if schema.get("type") != "object" or {"anyOf", "oneOf", "allOf"} & schema.keys():
            yield "the schema of a tool is no plain object"


def _roles(body: JsonObject) -> Iterator[str]:
    roles = [message["role"] for message in body["messages"]]
    if roles[:1] != ["user"] or roles[-1:] != ["user"]:
        yield "a conversation must begin and end with the user"
    if any(before == now for before, now in pairwise(roles)):
        yield "a conversation must alternate between user and assistant roles"


def _calls(body: JsonObject) -> Iterator[str]:
    owed: set[str] = set()
    seen: set[str] = set()
    for message in body["messages"]:
        blocks = message["content"]
        if message["role"] == "assistant":
            uses = [block["toolUse"] for block in blocks if "toolUse" in block]
            local = [use["toolUseId"] for use in uses if "type" not in use]
            if len(local) != len({*local}) or seen & {*local}:
                yield "toolUse ids must be unique"
            seen |= {*local}
            owed = {*local}
            hosted = [use["toolUseId"] for use in uses if "type" in use]
            came = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
            if hosted != came:
                yield "server tools without their results"
        else:
            given = [block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block]
            if sorted(given) != sorted(owed):
                yield f"results {given} for calls {owed}"
            kinds = ["toolResult" in block for block in blocks]
            if kinds != sorted(kinds, reverse=True):
                yield "results must come first"
            owed = set()
    if seen and "toolConfig" not in body:
        yield "the toolConfig field must be defined when using toolUse and toolResult"


def _blocks(body: JsonObject) -> Iterator[str]:
    names: list[str] = []
    for message in body["messages"]:
        blocks = message["content"]
        if not blocks:
            yield "a message without content"
        for block in blocks:
            if len(block) != 1 or not block.keys() <= KNOWN[message["role"]]:
                yield f"{[*block]} in a message of {message['role']}"
            yield from _block(block, message["role"])
        files = [kind for block in blocks for kind in block]
        if files.count("image") > 20 or files.count("document") > 5:
            yield "too many files"
        if "document" in files and "text" not in files:
            yield "a document needs a text"
        if "cachePoint" in files[:1] or "reasoningContent" in files[-1:]:
            yield "a block in the wrong place"
        names += (block["document"]["name"] for block in blocks if "document" in block)
    if len(names) != len({*names}):
        yield "names of documents must be unique"


def _block(block: JsonObject, role: str) -> Iterator[str]:
    match block:
        case {"text": said} if not said.strip():
            yield "the text field is blank"
        case {"image": _} | {"document": _}:
            yield from _file(block)
        case {"reasoningContent": thought}:
            if not (thought.get("redactedContent") or thought["reasoningText"]["signature"]):
                yield "reasoning without a signature"
        case {"toolUse": use}:
            if not NAME.fullmatch(use["name"]) or not NAME.fullmatch(use["toolUseId"]):
                yield "toolUse with a bad name or id"
            if not isinstance(use["input"], dict):
                yield "input is no object"
        case {"toolResult": result}:
            yield from _result(result, role)
        case _:
            pass


def _file(block: JsonObject) -> Iterator[str]:
    (file,) = block.values()
    data = base64.b64decode(file["source"]["bytes"])
    if "image" in block:
        if len(data) > IMAGE_BYTES_MAX or not data.startswith(SIGNS[file["format"]]):
            yield "an image that is too large or not what it says"
    elif not data.startswith(b"%PDF") or not DOCUMENT_NAME.fullmatch(file["name"]):
        yield "a document that is none, or its name"


def _result(result: JsonObject, role: str) -> Iterator[str]:
    if not result["content"]:
        yield "a result without content"
    if role == "assistant":
        return
    for inner in result["content"]:
        if not inner.keys() <= {"text", "image"}:
            yield "a result may hold only text and images"
        yield from _block(inner, role)


def _thinking(body: JsonObject, model: str) -> Iterator[str]:
    fields = body.get("additionalModelRequestFields", {})
    thinking, inference = fields.get("thinking"), body.get("inferenceConfig", {})
    if thinking is None:
        return
    if "claude" not in model or inference.keys() & {"temperature", "topP"} or "top_k" in fields:
        yield "what thinking excludes"
    if "any" in body.get("toolConfig", {}).get("toolChoice", {}):
        yield "thinking may not be enabled when a tool is forced"
    if thinking["type"] != "enabled":
        return
    if not 1024 <= thinking["budget_tokens"] < inference.get("maxTokens", 0):
        yield "the thinking budget"
    answers = [m["content"] for m in body["messages"] if m["role"] == "assistant"]
    uses = [b for b in (answers[-1] if answers else ()) if "type" not in b.get("toolUse", {"type"})]
    if uses and "reasoningContent" not in answers[-1][0]:
        yield "the final answer must start with thinking"
