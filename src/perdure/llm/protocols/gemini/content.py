"""Google Gemini: one segment of the conversation as contents.

Calls and their results are matched by order and name; an id is sent only if the provider gave one.
Newer models refuse an answer whose first call has no thought signature, so a call of another model
gets the dummy signature.

Invariant: every content has parts, every call of an answer is followed by its result, and only a
signature has no text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from perdure.llm.encoding import attachment, shared
from perdure.llm.encoding.attachment import InlineFile, InlineLimits
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.protocols.gemini import stream
from perdure.llm.protocols.gemini.stream import NAMESPACE
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata

NAME_CHARS_MAX: Final = 64
NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""The dummy signature that the provider accepts for calls of other models."""

FILES: Final = InlineLimits(
    types=frozenset({"image/png", "image/jpeg", "image/webp", attachment.PDF}),
    encoded_chars_max=14 * 1024 * 1024,
)
"""A whole request must be below 20 MB."""

_SIGNING_MODEL: Final = re.compile(r"(?:.*/)?gemini-(?:[3-9]|\d\d|[a-z])")
_RESULTS: Final[Mapping[str, str]] = {
    stream.CODE: stream.CODE_RESULT,
    stream.TOOL_CALL: stream.TOOL_RESPONSE,
}
"""Kind of a hosted call -> kind of its result."""
_LARGE_IMAGE: Final = "(the image that was made here is too large to send again)"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")


def needs_signature(model: str) -> bool:
    """Whether a model refuses calls without a thought signature."""
    return _SIGNING_MODEL.match(model) is not None


def ends_with_answer(segment: Segment) -> bool:
    """Whether a segment ends with the model's answer."""
    return segment.is_answer and not segment.calls()


def user_text(text: str) -> JsonObject:
    return _content("user", [{"text": text}])


def user_content(segment: Segment) -> JsonObject:
    """The user's content and system updates."""
    parts: list[JsonObject] = []
    for message in segment.messages:
        if message.role == "system":
            parts += _text(shared.system_update(message))
        else:
            parts += _user(message)
    return _content("user", parts or _text(shared.EMPTY_MESSAGE))


def answer(segment: Segment, *, signed: bool) -> list[JsonObject]:
    """The model's answer, in order, and the results of the calls that this program executed."""
    calls, found = segment.calls(), segment.results()
    parts: list[JsonObject] = []
    for part in segment.answer_parts():
        if isinstance(part, TextPart):
            parts += _text(part.text)
        elif isinstance(part, ReasoningPart):
            _add_reasoning(parts, part)
        elif not part.provider_executed:
            parts.append(_call(part))
        else:
            parts += _hosted(part, found.get(part.id))
    if all(part.get("thought") for part in parts):
        parts += _text(shared.EMPTY_ANSWER)
    if signed:
        _sign_first_call(parts)
    answer_content = _content("model", parts)
    return [answer_content, _content("user", _results(calls, found))] if calls else [answer_content]


def _content(role: str, parts: list[JsonObject]) -> JsonObject:
    return {"role": role, "parts": parts}


def _text(text: str) -> list[JsonObject]:
    """A text part, or none if the text is blank."""
    return [{"text": text}] if text.strip() else []


def _user(message: LLMMessage) -> Iterator[JsonObject]:
    for part in message.user_parts():
        if isinstance(part, TextPart):
            yield from _text(part.text)
        else:
            yield from _media(part)


def _media(media: MediaPart) -> list[JsonObject]:
    match attachment.inline_file(media, FILES):
        case InlineFile(media_type=media_type, data=data):
            return [{"inlineData": {"mimeType": media_type, "data": data}}]
        case note:
            return _text(note)


def _add_reasoning(parts: list[JsonObject], part: ReasoningPart) -> None:
    """Add a thought, or without text, the signature of the part before it."""
    signed = _signature(_native(part.metadata))
    if part.text.strip():
        parts.append({"text": part.text, "thought": True} | signed)
    elif signed and parts and parts[-1].keys() == {"text"}:
        parts[-1] = parts[-1] | signed
    elif signed:
        parts.append({"text": ""} | signed)


def _call(part: ToolCallPart) -> JsonObject:
    call: JsonObject = {"name": _name(part.name), "args": part.input}
    return {"functionCall": _with_id(call, part)} | _signature(_native(part.metadata))


def _sign_first_call(parts: list[JsonObject]) -> None:
    for index, part in enumerate(parts):
        if "functionCall" in part:
            parts[index] = {"thoughtSignature": NO_SIGNATURE} | part
            return


def _hosted(call: ToolCallPart, result: ToolResultPart | None) -> list[JsonObject]:
    """A hosted call of this provider with its result; nothing for other providers."""
    ran, came = _native(call.metadata), _native(result.metadata) if result else {}
    result_content = came.get("content") or (shared.unwrap(result.result.value) if result else None)
    if not shared.is_object(result_content):
        return []
    match ran.get("part"), came.get("part"):
        case (stream.IMAGE, stream.IMAGE):
            return [_image(result_content) | _signature(came)]
        case (str() as kind, str() as result_kind) if _RESULTS.get(kind) == result_kind:
            call_part = {kind: call.input} | _signature(ran)
            return [call_part, {result_kind: result_content} | _signature(came)]
        case _:
            return []


def _image(image: JsonObject) -> JsonObject:
    if len(str(image.get("data"))) > FILES.encoded_chars_max:
        return {"text": _LARGE_IMAGE}
    return {stream.IMAGE: image}


def _results(calls: list[ToolCallPart], found: dict[str, ToolResultPart]) -> list[JsonObject]:
    """One response per call, followed by the files of the results."""
    responses: list[JsonObject] = []
    files: list[JsonObject] = []
    for call in calls:
        result = found.get(call.id)
        response: JsonObject = {"name": _name(call.name)}
        if result is None:
            response["error"] = shared.NO_RESULT
        else:
            lowered = shared.lower_result(result.result)
            key = "error" if result.result.type == "error" else "content"
            response[key] = lowered.text or shared.NO_OUTPUT
            files += (file for media in lowered.media for file in _media(media))
        named: JsonObject = {"name": _name(call.name), "response": response}
        responses.append({"functionResponse": _with_id(named, call)})
    return responses + files


def _with_id(value: JsonObject, call: ToolCallPart) -> JsonObject:
    given = _native(call.metadata).get("id")
    return {"id": given} | value if isinstance(given, str) and given else value


def _name(name: str) -> str:
    sound = _NOT_IN_NAMES.sub("_", name)
    return (sound if sound[:1].isalpha() or sound[:1] == "_" else f"_{sound}")[:NAME_CHARS_MAX]


def _signature(native: JsonObject) -> JsonObject:
    given = native.get("thoughtSignature")
    return {"thoughtSignature": given} if isinstance(given, str) and given else {}


def _native(metadata: ProviderMetadata | None) -> JsonObject:
    return (metadata or {}).get(NAMESPACE, {})
