"""The structural rules by which Chat Completions accept or refuse a request body.

Written from the reference, not from the encoder. `faults` names all that would be refused.
"""

import re
from collections.abc import Iterator
from typing import Final

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

ROLES: Final = {"system", "user", "assistant", "tool"}
IMAGE: Final = re.compile(r"https?://.+|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*")


def faults(body: JsonObject) -> list[str]:
    messages: list[JsonObject] = body["messages"]
    return [*_head(body), *_messages(messages), *_answered(messages)]


def _head(body: JsonObject) -> Iterator[str]:
    if not body.get("model") or body.get("stream") is not True:
        yield "no model, or no stream"
    if "tool_choice" in body and not body.get("tools"):
        yield "a choice of tools without tools"


def _messages(messages: list[JsonObject]) -> Iterator[str]:
    for place, message in enumerate(messages):
        role = message["role"]
        if role not in ROLES:
            yield f"role {role}"
        if role == "system" and place:
            yield "a system message that is not the first"
        if role == "assistant":
            yield from _assistant(message)
        elif role == "user":
            yield from _content(message["content"])
        elif not isinstance(message["content"], str):
            yield f"content of {role} is not a text"


def _assistant(message: JsonObject) -> Iterator[str]:
    calls: list[JsonObject] = message.get("tool_calls", [])
    if message["content"] is None and not calls:
        yield "an answer with neither content nor calls"
    if "tool_calls" in message and not calls:
        yield "an empty list of calls"
    for call in calls:
        function = call["function"]
        if call["type"] != "function" or not isinstance(call["id"], str):
            yield "a call without type or id"
        if not isinstance(codec.decode_any(function["arguments"]), dict):
            yield "arguments that are no object"


def _content(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        return
    if not content:
        yield "a prompt without parts"
    for part in content:
        if part["type"] == "text" and not part["text"]:
            yield "an empty text part"
        if part["type"] == "image_url" and not IMAGE.fullmatch(part["image_url"]["url"]):
            yield "an image that is none"


def _answered(messages: list[JsonObject]) -> Iterator[str]:
    """Every call has its result right after it, and every result a call."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                yield "a result without a call"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            yield "a call without a result"
        open_calls = {call["id"] for call in message.get("tool_calls", [])}
    if open_calls:
        yield "a call without a result at the end"
