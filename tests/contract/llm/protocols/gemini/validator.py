"""The structural rules by which the Gemini API accepts or refuses a request body.

Written from its documentation and from its refusals, not from the encoder. `faults` names all that
would be refused.
"""

import base64
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from perdure.llm.encoding import shared
from perdure.schema.codec import JsonObject, JsonValue

NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
BODY_BYTES_MAX: Final = 20 * 1000 * 1000
SIGNS: Final = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "image/webp": b"RIFF",
    "application/pdf": b"%PDF",
}
HEAD: Final = {
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "serviceTier",
    "systemInstruction",
    "toolConfig",
    "tools",
}
DATA: Final = {"text", "inlineData", "functionCall", "functionResponse"} | {
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
}
SCHEMA: Final = {
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "properties",
    "required",
    "type",
}
FORMATS: Final = {"int32", "int64", "float", "double", "date-time", "enum"}
TYPES: Final = {"string", "number", "integer", "boolean", "array", "object"}


def faults(body: JsonObject, raw: bytes, *, signing: bool = True) -> list[str]:
    """Everything the API would refuse `body` for; `signing` is whether calls must be signed."""
    return [*_head(body, raw), *_turns(body), *_parts(body), *(_signed(body) if signing else ())]


def _head(body: JsonObject, raw: bytes) -> Iterator[str]:
    if len(raw) > BODY_BYTES_MAX:
        yield "the request is too large"
    if unknown := body.keys() - HEAD:
        yield f"unknown fields {unknown}"
    for part in body.get("systemInstruction", {}).get("parts", ()):
        if not part["text"].strip():
            yield "an empty instruction"
    generation = body.get("generationConfig", {})
    if not -(2**31) <= generation.get("seed", 0) < 2**31 or generation.get("stopSequences") == []:
        yield "generation"
    yield from _tools(body)


def _tools(body: JsonObject) -> Iterator[str]:
    declared = [d for tool in body.get("tools", ()) for d in tool["functionDeclarations"]]
    if ("tools" in body and not declared) or ("toolConfig" in body and not declared):
        yield "no tools"
    for tool in declared:
        if not NAME.fullmatch(tool["name"]) or not tool["description"]:
            yield "name or description of a tool"
        if "parameters" in tool:
            yield from schema_faults(tool["parameters"])
            if not tool["parameters"].get("properties"):
                yield "properties should be non-empty"


def schema_faults(schema: JsonValue) -> Iterator[str]:
    if not shared.is_object(schema) or schema.keys() - SCHEMA:
        yield f"not a schema: {schema}"
        return
    kind = schema.get("type")
    if kind not in TYPES and "anyOf" not in schema:
        yield f"type {kind}"
    if "enum" in schema and (kind != "string" or not all(map(_is_text, schema["enum"]))):
        yield "only texts can be enumerated"
    if schema.get("format", "enum") not in FORMATS:
        yield "format"
    if (kind == "array") != ("items" in schema):
        yield "items"
    properties = schema.get("properties", {})
    if not {*schema.get("required", ())} <= properties.keys():
        yield "required properties that are not there"
    for inner in (*properties.values(), *schema.get("anyOf", ())):
        yield from schema_faults(inner)
    if "items" in schema:
        yield from schema_faults(schema["items"])


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and value != ""


def _turns(body: JsonObject) -> Iterator[str]:
    contents: list[JsonObject] = body["contents"]
    nothing: JsonObject = {"role": "", "parts": []}
    roles = [content["role"] for content in contents]
    if roles[:1] != ["user"] or roles[-1:] != ["user"] or {*roles} - {"user", "model"}:
        yield "the first and the last word must be the user's"
    for before, now in pairwise([nothing, *contents]):
        calls = _of(before, "functionCall")
        answers = _of(now, "functionResponse")
        if [call["name"] for call in calls] != [answer["name"] for answer in answers]:
            yield "as many function responses as function calls, right after them"
        if [call.get("id") for call in calls] != [answer.get("id") for answer in answers]:
            yield "ids of calls and responses"
        if _of(now, "functionCall") and before["role"] != "user":
            yield "a function call turn must come right after a user turn"
    if contents and _of(contents[-1], "functionCall"):
        yield "calls without responses"


def _of(content: JsonObject, kind: str) -> list[JsonObject]:
    return [part[kind] for part in content["parts"] if kind in part]


def _parts(body: JsonObject) -> Iterator[str]:
    for content in body["contents"]:
        if not content["parts"]:
            yield "a content without parts"
        if all(part.get("thought") for part in content["parts"]):
            yield "a content of nothing but thoughts"
        for part in content["parts"]:
            yield from _part(part, content["role"])


def _part(part: JsonObject, role: str) -> Iterator[str]:
    if len(part.keys() & DATA) != 1 or part.keys() - DATA - {"thought", "thoughtSignature"}:
        yield f"not a part: {[*part]}"
    if role == "user" and part.keys() - {"text", "inlineData", "functionResponse"}:
        yield f"{[*part]} from the user"
    if not part.get("thoughtSignature", "x"):
        yield "an empty signature"
    yield from _data(part)


def _data(part: JsonObject) -> Iterator[str]:
    match part:
        case {"text": text} if not text.strip() and "thoughtSignature" not in part:
            yield "text must have something to read"
        case {"inlineData": {"mimeType": kind, "data": data}}:
            if not base64.b64decode(data).startswith(SIGNS[kind]):
                yield "a file that is not what it says"
        case {"functionCall": {"name": name, "args": args}}:
            if not NAME.fullmatch(name) or not isinstance(args, dict):
                yield "a call with a bad name or arguments"
        case {"functionResponse": {"name": name, "response": response}}:
            if not NAME.fullmatch(name) or not isinstance(response, dict):
                yield "a bad response"
        case _:
            pass


def _signed(body: JsonObject) -> Iterator[str]:
    for content in body["contents"]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            yield "function call is missing a thought_signature"
