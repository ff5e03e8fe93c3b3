"""Google Gemini: one run of the conversation as contents.

Pure. Calls and their results are matched by place and by name; an id goes along only where the
provider gave one. Newer models refuse an answer whose first call has no thought signature, so a
call of another model gets the one that stands for none.

Invariant: every content has parts, every call of an answer has its result right after it, and
nothing but a signature comes without text.
"""

import re
from collections.abc import Iterator
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
from perdure.llm.protocols.gemini.stream import CODE, CODE_RESULT, NAMESPACE
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ProviderMetadata

NAME_CHARS_MAX: Final = 64
NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""What the provider takes for the signature of a call that it did not make."""

FILES: Final = InlineLimits(
    types=frozenset({"image/png", "image/jpeg", "image/webp", attachment.PDF}),
    encoded_chars_max=14 * 1024 * 1024,
)
"""All of a request must be below 20 MB."""

_SIGNING_MODEL: Final = re.compile(r"(?:.*/)?gemini-(?:[3-9]|\d\d|[a-z])")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]")


def needs_signature(model: str) -> bool:
    """Whether a model refuses calls without a thought signature."""
    return _SIGNING_MODEL.match(model) is not None


def ends_with_answer(run: Segment) -> bool:
    """Whether the last word of a run is the model's."""
    return run.is_answer and not run.calls()


def user_text(text: str) -> JsonObject:
    return _content("user", [{"text": text}])


def user_content(run: Segment) -> JsonObject:
    """What the user said, and what the model was told in between."""
    parts: list[JsonObject] = []
    for message in run.messages:
        if message.role == "system":
            parts += _text(shared.system_update(message))
        else:
            parts += _user(message)
    return _content("user", parts or _text(shared.EMPTY_MESSAGE))


def answer(run: Segment, *, signed: bool) -> list[JsonObject]:
    """What the model answered, in its order, and the results of the calls that we made for it."""
    calls, found = run.calls(), run.results()
    parts: list[JsonObject] = []
    for part in run.answered():
        if isinstance(part, TextPart):
            parts += _text(part.text)
        elif isinstance(part, ReasoningPart):
            _add_reasoning(parts, part)
        elif isinstance(part, ToolCallPart) and not part.provider_executed:
            parts.append(_call(part))
        elif isinstance(part, ToolCallPart):
            parts += _hosted(part, found.get(part.id))
    if all(part.get("thought") for part in parts):
        parts += _text(shared.EMPTY_ANSWER)
    if signed:
        _sign_first_call(parts)
    said = _content("model", parts)
    return [said, _content("user", _results(calls, found))] if calls else [said]


def _content(role: str, parts: list[JsonObject]) -> JsonObject:
    return {"role": role, "parts": parts}


def _text(text: str) -> list[JsonObject]:
    """A text part, or none for blank text."""
    return [{"text": text}] if text.strip() else []


def _user(message: LLMMessage) -> Iterator[JsonObject]:
    for part in message.content:
        if isinstance(part, TextPart):
            yield from _text(part.text)
        elif isinstance(part, MediaPart):
            yield from _media(part)


def _media(media: MediaPart) -> list[JsonObject]:
    match attachment.inline_file(media, FILES):
        case InlineFile(media_type=media_type, data=data):
            return [{"inlineData": {"mimeType": media_type, "data": data}}]
        case told:
            return _text(told)


def _add_reasoning(parts: list[JsonObject], part: ReasoningPart) -> None:
    """A thought; or, without text, the signature of what was said before it."""
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
    """What the provider ran itself and what came of it; nothing of what another one ran."""
    ran, came = _native(call.metadata), _native(result.metadata) if result else {}
    if result is None or ran.get("part") != CODE or came.get("part") != CODE_RESULT:
        return []
    told = came.get("content") or shared.unwrap(result.result.value)
    if not shared.is_object(told):
        return []
    return [{CODE: call.input} | _signature(ran), {CODE_RESULT: told} | _signature(came)]


def _results(calls: list[ToolCallPart], found: dict[str, ToolResultPart]) -> list[JsonObject]:
    """One response for each call, and after them the files that they hold."""
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
