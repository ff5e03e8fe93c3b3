"""The structural rules by which the Responses API accepts or refuses a request body.

Written from its reference, not from the encoder. `faults` names all that would be refused. What a
reference points at is the provider's to know; here only its form and that it is made once.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
IMAGE: Final = re.compile(r"https?://.+|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*")
TEXT_CHARS_MAX: Final = 10_485_760
TEXT_KINDS: Final = {"user": "input_text", "system": "input_text", "assistant": "output_text"}
HOSTED: Final = {
    "code_interpreter_call",
    "compaction",
    "file_search_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
}
COMBINATORS: Final = {"anyOf", "oneOf", "allOf", "not", "enum"}
EFFORTS: Final = {"none", "minimal", "low", "medium", "high", "xhigh"}


def faults(body: JsonObject) -> list[str]:
    return [
        *_head(body),
        *_items(body["input"]),
        *_calls(body["input"]),
        *_reasoning(body["input"]),
    ]


def _head(body: JsonObject) -> Iterator[str]:
    if not body.get("model") or body.get("stream") is not True:
        yield "model or stream is missing"
    if not isinstance(body.get("store"), bool):
        yield "store is not said"
    if "effort" in body.get("reasoning", {}) and body["reasoning"]["effort"] not in EFFORTS:
        yield "an unknown effort"
    if body.get("include") == [] or body.get("tools") == []:
        yield "an empty list"
    if len(body.get("prompt_cache_key", "")) > 64:
        yield "the cache key is too long"
    if body.get("max_output_tokens", 16) < 16:
        yield "too few output tokens"
    for tool in body.get("tools", ()):
        if not NAME.fullmatch(tool["name"]):
            yield "the name of a tool"
        if tool["parameters"].get("type") != "object" or COMBINATORS & tool["parameters"].keys():
            yield "the schema of a tool is no plain object"


def _items(items: list[JsonObject]) -> Iterator[str]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "item_reference" or kind in HOSTED:
            if not NAME.fullmatch(item["id"]):
                yield "the id of an item"
        elif kind in _CHECKS:
            yield from _CHECKS[kind](item)
        else:
            yield f"an unknown item {kind}"


def _thought(item: JsonObject) -> Iterator[str]:
    if not isinstance(item.get("summary"), list) or not item.get("encrypted_content"):
        yield "reasoning that cannot be restored"
    for part in item["summary"]:
        yield from _text(part, "summary_text")


def _call(item: JsonObject) -> Iterator[str]:
    if not NAME.fullmatch(item["name"]) or not 0 < len(item["call_id"]) <= 64:
        yield "the name or the id of a call"
    if not isinstance(codec.decode_any(item["arguments"]), dict):
        yield "arguments that are no object"


def _output(item: JsonObject) -> Iterator[str]:
    yield from _content(item["output"], "input_text")


def _message(item: JsonObject) -> Iterator[str]:
    role = item.get("role")
    if role not in TEXT_KINDS:
        yield f"an unknown role {role}"
    else:
        yield from _content(item["content"], TEXT_KINDS[role])


def _content(content: JsonValue, kind: str) -> Iterator[str]:
    if not content:
        yield "empty content"
    elif isinstance(content, str):
        yield from _text({"type": kind, "text": content}, kind)
    else:
        for part in content:
            if part["type"] == "input_image" and kind == "input_text":
                if not IMAGE.fullmatch(part["image_url"]):
                    yield "an image that is none"
            elif part["type"] == "input_file" and kind == "input_text":
                # `JVBERi0` is how a PDF begins, in base64.
                data = part["file_data"].removeprefix("data:application/pdf;base64,")
                if not part["filename"] or not data.startswith("JVBERi0"):
                    yield "a file that is none"
            else:
                yield from _text(part, kind)


def _text(part: JsonObject, kind: str) -> Iterator[str]:
    if part["type"] != kind or not 0 < len(part["text"]) <= TEXT_CHARS_MAX:
        yield f"a text that is no {kind}, is empty or is too long"


def _calls(items: list[JsonObject]) -> Iterator[str]:
    """Each call is answered once, before anything else is said by either side."""
    waiting: list[str] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                yield "an output without its call"
            else:
                waiting.remove(item["call_id"])
        elif waiting and item.get("role") in ("user", "system"):
            yield "a call without its output"
    if waiting:
        yield "a call without its output"


def _reasoning(items: list[JsonObject]) -> Iterator[str]:
    for item, after in pairwise([*items, {}]):
        follows = after.get("role") == "assistant" or after.get("type") in _OF_ANSWERS
        thought = item.get("type") == "reasoning" or item.get("id", "").startswith("rs_")
        if thought and not follows:
            yield "reasoning without the item that must follow it"
    references = [item["id"] for item in items if item.get("type") == "item_reference"]
    if len(references) != len({*references}):
        yield "an item referred to twice"


_OF_ANSWERS: Final = {"reasoning", "function_call", "item_reference", *HOSTED}
_CHECKS: Final[Mapping[str, Callable[[JsonObject], Iterator[str]]]] = {
    "message": _message,
    "reasoning": _thought,
    "function_call": _call,
    "function_call_output": _output,
}
