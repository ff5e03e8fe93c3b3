"""OpenAI Responses: one run of the conversation as input items.

Pure. The order of an answer is kept: text is flushed around reasoning, calls and hosted items.
What another provider executed itself has no form here and is left out.

Invariant: a run's items depend on that run alone. No reasoning item stands last in its answer,
no text is empty or longer than the API takes, and a call's id is the same in call and output.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from msgspec import field

from perdure.llm.encoding import attachment, shared
from perdure.llm.encoding import attachment as inline_file
from perdure.llm.encoding.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    ReasoningPart,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.protocols.openai_responses import native
from perdure.net import data_uri
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State

DOCUMENT_ENCODED_CHARS_MAX: Final = 16 * 1024 * 1024
"""All files of a request must be below 50 MB."""

TEXT_CHARS_MAX: Final = 10 * 1024 * 1024
CALL_ID_CHARS_MAX: Final = 64
NAME_CHARS_MAX: Final = 64
_EMPTY_MESSAGE: Final = "(The message is empty.)"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


def items(run: Segment, facts: ModelFacts) -> list[JsonObject]:
    """The input items of one run, in order."""
    said: list[JsonObject] = []
    user: list[JsonObject] | None = None
    for message in run.messages:
        if message.role == "assistant":
            said += _answer(message)
        elif message.role == "tool":
            said += _outputs(message)
        elif message.role == "user":
            user = _user_content(message)
            said.append({"role": "user", "content": user})
        elif facts.system_role:
            said += _system(message)
        elif user is not None:
            user += _texts(shared.system_update(message))
        else:
            content = list(_texts(shared.system_update(message)))
            said.append({"role": "user", "content": content})
    return said


def _user_content(message: LLMMessage) -> list[JsonObject]:
    content: list[JsonObject] = []
    for part in message.content:
        if isinstance(part, TextPart):
            content += _texts(part.text)
        elif isinstance(part, MediaPart):
            content += _media(part)
    return content or [*_texts(_EMPTY_MESSAGE)]


def _system(message: LLMMessage) -> list[JsonObject]:
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    content = list(_texts("\n\n".join(texts)))
    return [{"role": "system", "content": content}] if content else []


def _media(media: MediaPart) -> Iterable[JsonObject]:
    document = inline_file.inline_document(media, encoded_chars_max=DOCUMENT_ENCODED_CHARS_MAX)
    if document is not None:
        data = data_uri.write_encoded(document.media_type, document.data)
        name = " ".join((media.filename or "").split())[:120]
        return [{"type": "input_file", "filename": name or "document.pdf", "file_data": data}]
    match attachment.classify(media):
        case ImageAttachment(url=url):
            return [{"type": "input_image", "image_url": url}]
        case TextAttachment(text=text):
            return _texts(text)
        case OmittedAttachment(note=note):
            return _texts(note)


def _texts(text: str, *, kind: str = "input_text") -> Iterable[JsonObject]:
    # One text has a limit; nothing is lost by sending a longer one as several.
    for at in range(0, len(text), TEXT_CHARS_MAX):
        yield {"type": kind, "text": text[at : at + TEXT_CHARS_MAX]}


# ---- answers ------------------------------------------------------------------------------------


class _Entry(State):
    item: JsonObject
    reasoning: bool = False


class _Answer(State):
    """The items of one assistant message as they gather."""

    entries: list[_Entry] = field(default_factory=list[_Entry])
    content: list[JsonObject] | None = None
    """Of the message item that further text belongs to."""
    references: set[str] = field(default_factory=set[str])
    reasonings: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    def add(self, item: JsonObject, *, reasoning: bool = False) -> None:
        self.content = None
        self.entries.append(_Entry(item, reasoning))

    def say(self, text: str) -> None:
        texts = list(_texts(text, kind="output_text"))
        if not texts:
            return
        if self.content is None:
            content: list[JsonObject] = []
            self.add({"role": "assistant", "content": content})
            self.content = content
        self.content += texts

    def reason(self, part: ReasoningPart) -> None:
        item = native.read(part.metadata)
        if item is None:
            return
        if item.referable:
            self.refer(item.id, reasoning=True)
            return
        known = self.reasonings.get(item.id)
        if known is None:
            known = self.reasonings[item.id] = {"type": "reasoning", "summary": []}
            self.add(known, reasoning=True)
        known["summary"] += _texts(part.text, kind="summary_text")
        if item.encrypted is not None:
            known["encrypted_content"] = item.encrypted

    def refer(self, id: str, *, reasoning: bool = False) -> None:
        if id not in self.references:
            self.references.add(id)
            self.add({"type": "item_reference", "id": id}, reasoning=reasoning)

    def items(self) -> list[JsonObject]:
        """All that can be sent: reasoning in the clear is not, nor reasoning that led nowhere."""
        whole = [entry for entry in self.entries if not _is_unsealed(entry.item)]
        while whole and whole[-1].reasoning:
            whole.pop()
        return [entry.item for entry in whole]


def _is_unsealed(item: JsonObject) -> bool:
    return item.get("type") == "reasoning" and "encrypted_content" not in item


def _answer(message: LLMMessage) -> list[JsonObject]:
    answer = _Answer()
    for part in message.content:
        match part:
            case TextPart(text=text):
                answer.say(text)
            case ReasoningPart():
                answer.reason(part)
            case ToolCallPart(provider_executed=False):
                answer.add(_call(part))
            case ToolResultPart(provider_executed=True):
                _hosted(part, answer)
            case _:
                # A hosted call is sent with its result; media is nothing that an answer holds.
                pass
    return answer.items()


def _call(part: ToolCallPart) -> JsonObject:
    item: JsonObject = {
        "type": "function_call",
        "call_id": _call_id(part.id),
        "name": _NOT_IN_NAMES.sub("_", part.name)[:NAME_CHARS_MAX] or "_",
        "arguments": shared.json_text(part.input),
    }
    stored = native.read(part.metadata)
    if stored is not None and stored.referable and stored.id.startswith("fc"):
        # Reasoning that is referred to asks for the very item that followed it.
        item["id"] = stored.id
    return item


def _call_id(id: str) -> str:
    """The id as it came, or, where another provider's is too long for this one, its digest."""
    if 0 < len(id) <= CALL_ID_CHARS_MAX:
        return id
    return f"call_{hashlib.sha256(id.encode()).hexdigest()[:32]}"


def _hosted(part: ToolResultPart, answer: _Answer) -> None:
    item = native.read(part.metadata)
    if item is None:
        return
    if item.referable:
        answer.refer(item.id)
        return
    kept = _kept_item(part.result.value)
    if kept is not None and kept.get("id") == item.id and native.is_item_id(item.id):
        answer.add(kept)


def _kept_item(value: JsonValue) -> JsonObject | None:
    """The item itself, which history keeps inside the result's own envelope."""
    match value:
        case {"type": str() as kind} if kind in native.HOSTED:
            return value
        case {"type": "json", "value": inner}:
            return _kept_item(inner)
        case _:
            return None


# ---- tool results -------------------------------------------------------------------------------


def _outputs(message: LLMMessage) -> Iterable[JsonObject]:
    for part in message.content:
        if isinstance(part, ToolResultPart) and not part.provider_executed:
            yield {
                "type": "function_call_output",
                "call_id": _call_id(part.id),
                "output": _output(part),
            }


def _output(part: ToolResultPart) -> str | list[JsonObject]:
    result = shared.lower_result(part.result)
    content = list(_texts(result.text))
    for media in result.media:
        content += _media(media)
    match content:
        case []:
            return shared.NO_OUTPUT
        case [{"type": "input_text", "text": str() as text}]:
            return text
        case _:
            return content
