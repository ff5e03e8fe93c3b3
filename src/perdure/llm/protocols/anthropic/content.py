"""Anthropic Messages: parts of a conversation as content blocks.

The provider refuses blank text, unsigned thinking, call ids that it has seen and mislabelled
images, and a part stays in the conversation for good. Each of these therefore has an accepted form.

Invariant: every block is valid by itself, and blocks of a segment depend on that segment alone.
"""

import base64
import re
from collections.abc import Iterator
from typing import Final

from perdure.llm.encoding import attachment, call_id, shared
from perdure.llm.encoding import attachment as inline_file
from perdure.llm.encoding.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.protocols.anthropic.stream import COMPACTION, MCP_CALL, NAMESPACE
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata

IMAGE_ENCODED_CHARS_MAX: Final = 5 * 1024 * 1024
DOCUMENT_ENCODED_CHARS_MAX: Final = 16 * 1024 * 1024
"""A whole request must be below 32 MB."""

TOOL_NAME_CHARS_MAX: Final = 64
THINKING: Final = frozenset({"thinking", "redacted_thinking"})

_OWN_ID: Final = re.compile(r"toolu_[A-Za-z0-9_]{16,}")
_HOSTED_ID: Final = re.compile(r"(?:srv|mcp)toolu_[A-Za-z0-9_]+")
_MCP_RESULT: Final = "mcp_tool_result"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_SILENT_FAILURE: Final = "The tool failed and did not say why"


def text(value: str) -> list[JsonObject]:
    """A text block, or none if the text is blank."""
    return [{"type": "text", "text": value}] if value.strip() else []


def user(message: LLMMessage) -> Iterator[JsonObject]:
    for part in message.user_parts():
        if isinstance(part, TextPart):
            yield from text(part.text)
        else:
            yield from _media(part)


def answer(segment: Segment) -> list[JsonObject]:
    """The model's answer, in order. It may end neither with thinking nor with a space."""
    blocks = _blocks(segment, unfinished=False)
    while blocks and blocks[-1]["type"] in THINKING:
        blocks.pop()
    if blocks and blocks[-1]["type"] == "text":
        blocks[-1] = {"type": "text", "text": blocks[-1]["text"].rstrip()}
    # Without a placeholder, the texts before and after it would be joined.
    return blocks or text(shared.EMPTY_ANSWER)


def unfinished(segment: Segment) -> list[JsonObject]:
    """What `answer` leaves out of an answer that ends with a hosted call without its result.

    The provider makes the result when a paused answer goes on, and refuses such a call elsewhere.
    """
    whole, kept = _blocks(segment, unfinished=True), _blocks(segment, unfinished=False)
    while kept and kept[-1]["type"] in THINKING:
        kept.pop()
    return whole[len(kept) :] if whole and whole[-1]["type"] == "server_tool_use" else []


def results(segment: Segment) -> list[JsonObject]:
    """One result for each call of the segment that this program executed."""
    ids, found = call_id.unique_ids(segment, _OWN_ID), segment.results()
    return [_result(found.get(own_id), wire_id) for own_id, wire_id in ids.items()]


def _blocks(segment: Segment, *, unfinished: bool) -> list[JsonObject]:
    """All blocks of an answer, also hosted calls without a result if they are `unfinished`."""
    ids, found = call_id.unique_ids(segment, _OWN_ID), segment.results()
    blocks: list[JsonObject] = []
    for part in segment.answer_parts():
        if isinstance(part, TextPart):
            blocks += text(part.text)
        elif isinstance(part, ReasoningPart):
            blocks += _thinking(part)
        elif part.provider_executed:
            hosted = _hosted(part, found.get(part.id))
            blocks += hosted or (_hosted_call(part) if unfinished else [])
        else:
            blocks.append(_call(part, ids[part.id]))
    return blocks


def _thinking(part: ReasoningPart) -> list[JsonObject]:
    native = _native(part.metadata)
    if native.get("type") == COMPACTION:
        return [{"type": COMPACTION, "content": part.text}] if part.text else []
    if isinstance(data := native.get("redactedData"), str):
        return [{"type": "redacted_thinking", "data": data}]
    if (signature := native.get("signature")) and isinstance(signature, str):
        return [{"type": "thinking", "thinking": part.text, "signature": signature}]
    # From a failed turn: thinking without a signature is refused.
    return text(part.text)


def _call(part: ToolCallPart, wire_id: str) -> JsonObject:
    name = _NOT_IN_NAMES.sub("_", part.name)[:TOOL_NAME_CHARS_MAX] or "unnamed"
    return {"type": "tool_use", "id": wire_id, "name": name, "input": part.input}


def _hosted(call: ToolCallPart, result: ToolResultPart | None) -> list[JsonObject]:
    """A hosted call with its result, if both are complete and this model's own; else nothing."""
    native = _native(result.metadata) if result else {}
    kind = native.get("type")
    known = isinstance(kind, str) and kind.endswith("_tool_result")
    if result is None or not known or not _HOSTED_ID.fullmatch(call.id):
        return []
    content = native.get("content") or shared.unwrap(result.result.value)
    if content is None:
        return []
    block: JsonObject = {"type": kind, "tool_use_id": call.id, "content": content}
    if kind == _MCP_RESULT:
        block["is_error"] = result.result.type == "error"
    return [*_hosted_call(call), block]


def _hosted_call(call: ToolCallPart) -> list[JsonObject]:
    if not _HOSTED_ID.fullmatch(call.id):
        return []
    block: JsonObject = {"id": call.id, "name": call.name, "input": call.input}
    native = _native(call.metadata)
    if native.get("type") != MCP_CALL:
        return [{"type": "server_tool_use"} | block]
    return [{"type": MCP_CALL, "server_name": native.get("serverName") or ""} | block]


def _result(part: ToolResultPart | None, wire_id: str) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": wire_id}
    if part is None:
        return block | {"content": shared.NO_RESULT, "is_error": True}
    lowered = shared.lower_result(part.result)
    if part.result.type == "error":
        error_text = lowered.text if lowered.text.strip() else _SILENT_FAILURE
        return block | {"content": error_text, "is_error": True}
    if lowered.media:
        images = [image for media in lowered.media for image in _media(media)]
        listed = text(lowered.text) + images
        return block | {"content": listed} if listed else block
    return block | {"content": lowered.text} if lowered.text.strip() else block


def _media(media: MediaPart) -> list[JsonObject]:
    document = inline_file.inline_document(media, encoded_chars_max=DOCUMENT_ENCODED_CHARS_MAX)
    if document is not None:
        source = {"type": "base64", "media_type": document.media_type, "data": document.data}
        return [{"type": "document", "source": source}]
    match attachment.classify(media):
        case ImageAttachment(url=url) if url.startswith("https://"):
            return [{"type": "image", "source": {"type": "url", "url": url}}]
        case ImageAttachment(url=url) if url.startswith("http://"):
            why = "the provider fetches only from https addresses"
            return text(inline_file.omitted_note(media, why))
        case ImageAttachment(url=url):
            return _image(media, url.partition(",")[2])
        case TextAttachment(text=inlined):
            return text(inlined)
        case OmittedAttachment(note=note):
            return text(note)


def _image(media: MediaPart, encoded: str) -> list[JsonObject]:
    if len(encoded) > IMAGE_ENCODED_CHARS_MAX:
        return text(inline_file.omitted_note(media, "it is too large"))
    media_type = inline_file.sniff_type(base64.b64decode(encoded[:16]))
    if media_type is None or media_type == inline_file.PDF:
        return text(inline_file.omitted_note(media, "it is not an image"))
    source = {"type": "base64", "media_type": media_type, "data": encoded}
    return [{"type": "image", "source": source}]


def _native(metadata: ProviderMetadata | None) -> JsonObject:
    return (metadata or {}).get(NAMESPACE, {})
