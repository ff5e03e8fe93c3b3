"""Bedrock Converse: parts of a conversation as content blocks.

Pure. The service refuses blank text, reasoning without its signature, call ids that it has seen,
files that are not what they say and more of them than it takes, and a part stays in the
conversation for good. So each of these has a form here that it takes, or is left out.

Invariant: every block is valid by itself, and blocks of one run depend on that run alone.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from perdure.llm.encoding import attachment, call_id, shared
from perdure.llm.encoding.attachment import PDF, InlineFile, InlineLimits
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.protocols.bedrock.stream import HOSTED, NAMESPACE
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata

NAME_CHARS_MAX: Final = 64
FILE_CHARS_MAX: Final = 5 * 1024 * 1024
"""3.75 MB of an image, in base64. Documents may be a little larger."""

IMAGES_MAX: Final = 20
DOCUMENTS_MAX: Final = 5

_IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_IMAGES: Final = InlineLimits(types=_IMAGE_TYPES, encoded_chars_max=FILE_CHARS_MAX)
_FILES: Final = InlineLimits(types=_IMAGE_TYPES | {PDF}, encoded_chars_max=FILE_CHARS_MAX)
_OWN_ID: Final = re.compile(r"(?:tooluse|toolu_bdrk)_[A-Za-z0-9_-]{16,50}")
_HOSTED_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_READS_DOCUMENTS: Final = re.compile(r"anthropic\.claude|amazon\.nova")
_SEE_FILE: Final = "(see the attached file)"
_TOO_MANY: Final = "[Attachment left out: there are too many in one message]"
_FAILED: Final = "The tool failed"


def reads_documents(model: str) -> bool:
    return _READS_DOCUMENTS.search(model) is not None


def text(value: str) -> list[JsonObject]:
    """A text block, or none for blank text."""
    return [{"text": value}] if value.strip() else []


def user_content(run: Segment, *, documents: bool) -> list[JsonObject]:
    """What the user said, and what the model was told in between."""
    files = _FILES if documents else _IMAGES
    blocks: list[JsonObject] = []
    for message in run.messages:
        if message.role == "system":
            blocks += text(shared.system_update(message))
        else:
            blocks += _user(message, files)
    blocks = _bounded(blocks)
    if any("document" in block for block in blocks) and not any("text" in b for b in blocks):
        # A document never goes alone.
        blocks += text(_SEE_FILE)
    return blocks or text(shared.EMPTY_MESSAGE)


def answer(run: Segment) -> list[JsonObject]:
    """What the model answered, in its order. It may not end with reasoning."""
    ids, found = call_id.unique_ids(run, _OWN_ID), run.results()
    blocks: list[JsonObject] = []
    for part in run.answered():
        if isinstance(part, TextPart):
            blocks += text(part.text)
        elif isinstance(part, ReasoningPart):
            blocks += _reasoning(part)
        elif isinstance(part, ToolCallPart) and part.provider_executed:
            blocks += _hosted(part, found.get(part.id))
        elif isinstance(part, ToolCallPart):
            use: JsonObject = {"toolUseId": ids[part.id], "name": _name(part), "input": part.input}
            blocks.append({"toolUse": use})
    while blocks and "reasoningContent" in blocks[-1]:
        blocks.pop()
    return blocks or text(shared.EMPTY_ANSWER)


def results(run: Segment) -> list[JsonObject]:
    """One result for each call of the run that we were to make."""
    ids, found = call_id.unique_ids(run, _OWN_ID), run.results()
    return [
        {"toolResult": {"toolUseId": wire_id, "content": _result(found.get(own_id))}}
        for own_id, wire_id in ids.items()
    ]


def called(run: Segment) -> Iterator[str]:
    """The names of the tools that an answer called, as they are sent."""
    return (_name(part) for part in run.calls())


def _user(message: LLMMessage, files: InlineLimits) -> Iterator[JsonObject]:
    for part in message.content:
        if isinstance(part, TextPart):
            yield from text(part.text)
        elif isinstance(part, MediaPart):
            yield from _media(part, files)


def _media(media: MediaPart, files: InlineLimits) -> list[JsonObject]:
    match attachment.inline_file(media, files):
        case InlineFile(media_type=media_type, data=data) if media_type == PDF:
            name = blake2b(data.encode(), digest_size=6).hexdigest()
            document = {"format": "pdf", "name": f"document {name}", "source": {"bytes": data}}
            return [{"document": document}]
        case InlineFile(media_type=media_type, data=data):
            kind = media_type.partition("/")[2]
            return [{"image": {"format": kind, "source": {"bytes": data}}}]
        case told:
            return text(told)


def _bounded(blocks: list[JsonObject]) -> list[JsonObject]:
    """The same blocks; files beyond what one message may hold are told instead."""
    left = {"image": IMAGES_MAX, "document": DOCUMENTS_MAX}
    kept: list[JsonObject] = []
    for block in blocks:
        (kind,) = block
        if kind in left:
            left[kind] -= 1
        kept += [block] if left.get(kind, 0) >= 0 else text(_TOO_MANY)
    return kept


def _reasoning(part: ReasoningPart) -> list[JsonObject]:
    """Signed or sealed reasoning. Any other is not wanted back, or refused."""
    native = _native(part.metadata)
    if (sealed := native.get("redactedData")) and isinstance(sealed, str):
        return [{"reasoningContent": {"redactedContent": sealed}}]
    if (signature := native.get("signature")) and isinstance(signature, str):
        thought: JsonObject = {"text": part.text, "signature": signature}
        return [{"reasoningContent": {"reasoningText": thought}}]
    return []


def _hosted(call: ToolCallPart, result: ToolResultPart | None) -> list[JsonObject]:
    """A call with its result, if both are this model's own and whole; else nothing."""
    native = _native(result.metadata) if result else {}
    kind = native.get("type")
    if result is None or not isinstance(kind, str) or not _HOSTED_ID.fullmatch(call.id):
        return []
    told = _elements(native.get("content")) or _elements(shared.unwrap(result.result.value))
    if not told:
        return []
    use: JsonObject = {"toolUseId": call.id, "name": _name(call), "input": call.input}
    came: JsonObject = {"toolUseId": call.id, "content": told}
    came |= {"type": kind} if kind else {}
    came |= {"status": "error"} if native.get("status") == "error" else {}
    return [{"toolUse": use | {"type": HOSTED}}, {"toolResult": came}]


def _elements(value: JsonValue) -> list[JsonObject]:
    """The blocks of a hosted result; none of what is no list of blocks."""
    match value:
        case [*found] if all(shared.is_object(item) and item for item in found):
            return found
        case _:
            return []


def _result(part: ToolResultPart | None) -> list[JsonObject]:
    if part is None:
        return text(shared.NO_RESULT)
    lowered = shared.lower_result(part.result)
    if part.result.type == "error":
        said = f"{_FAILED}: {lowered.text}" if lowered.text.strip() else _FAILED
        return text(said)
    shown = [block for media in lowered.media for block in _media(media, _IMAGES)]
    return _bounded(text(lowered.text) + shown) or text(shared.NO_OUTPUT)


def _name(call: ToolCallPart) -> str:
    return _NOT_IN_NAMES.sub("_", call.name)[:NAME_CHARS_MAX] or "unnamed"


def _native(metadata: ProviderMetadata | None) -> JsonObject:
    return (metadata or {}).get(NAMESPACE, {})
