"""OpenAI Chat Completions: one segment of the conversation as messages.

A system message inside the conversation becomes wrapped user text. Calls that another provider
executed cannot be encoded here and are left out with their results. Files of tool results follow
the results in one user message. What differs between providers is in their dialect.

Invariant: a segment's messages depend on that segment alone, and no attachment makes a request
invalid.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from msgspec import field

from perdure.llm.encoding import attachment, shared
from perdure.llm.encoding.attachment import ImageAttachment, OmittedAttachment, TextAttachment
from perdure.llm.encoding.chat_dialect import ChatDialect
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
from perdure.llm.protocols.openai_chat.stream import NAMESPACE
from perdure.net import data_uri
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

DOCUMENT_ENCODED_CHARS_MAX: Final = 16 * 1024 * 1024
CALL_ID_CHARS_MAX: Final = 40
SHORT_CALL_ID_CHARS: Final = 9

_CALL_ID: Final = re.compile(rf"[A-Za-z0-9_.:-]{{1,{CALL_ID_CHARS_MAX}}}")
_SHORT_CALL_ID: Final = re.compile(rf"[A-Za-z0-9]{{{SHORT_CALL_ID_CHARS}}}")


def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
    """The messages of a segment, in order."""
    dialect = facts.dialect
    messages: list[JsonObject] = []
    user: _UserContent | None = None
    files: list[JsonObject] = []
    for message in segment.messages:
        if message.role == "assistant":
            messages.append(_assistant(message, dialect))
        elif message.role == "tool":
            messages += _tool_results(message, files, dialect)
        elif message.role == "system" and user is not None:
            user.texts.append(shared.system_update(message))
            messages[-1] = user.item()
        else:
            user = _user(message, dialect)
            messages.append(user.item())
    if files:
        messages.append(_UserContent([_heading(files)], files).item())
    return messages


class _UserContent(State):
    texts: list[str] = field(default_factory=list[str])
    files: list[JsonObject] = field(default_factory=list[JsonObject])

    def item(self) -> JsonObject:
        # A plain string if possible: some local servers do not support content parts.
        text = "\n\n".join(text for text in self.texts if text)
        if not self.files:
            return {"role": "user", "content": text}
        parts: list[JsonObject] = [{"type": "text", "text": text}] if text else []
        return {"role": "user", "content": parts + self.files}


def _heading(files: list[JsonObject]) -> str:
    images = all(part["type"] == "image_url" for part in files)
    return f"{'Images' if images else 'Files'} from the tool results above:"


def _user(message: LLMMessage, dialect: ChatDialect) -> _UserContent:
    if message.role == "system":
        return _UserContent([shared.system_update(message)])
    content = _UserContent()
    for part in message.user_parts():
        if isinstance(part, TextPart):
            content.texts.append(part.text)
        else:
            _attach(part, content.texts, content.files, dialect)
    return content


def _attach(
    media: MediaPart, texts: list[str], files: list[JsonObject], dialect: ChatDialect
) -> None:
    if dialect.documents and (document := _document(media)) is not None:
        files.append(document)
        return
    match attachment.classify(media):
        case ImageAttachment(url=url):
            files.append({"type": "image_url", "image_url": {"url": url}})
        case TextAttachment(text=text):
            texts.append(text)
        case OmittedAttachment(note=note):
            texts.append(note)


def _document(media: MediaPart) -> JsonObject | None:
    found = attachment.inline_document(media, encoded_chars_max=DOCUMENT_ENCODED_CHARS_MAX)
    if found is None:
        return None
    name = " ".join((media.filename or "").split())[:120] or "document.pdf"
    data = data_uri.write_encoded(found.media_type, found.data)
    return {"type": "file", "file": {"filename": name, "file_data": data}}


# ---- answers ------------------------------------------------------------------------------------


def _assistant(message: LLMMessage, dialect: ChatDialect) -> JsonObject:
    calls = [
        {
            "id": _call_id(part.id, dialect),
            "type": "function",
            "function": {"name": part.name, "arguments": shared.json_text(part.input)},
        }
        for part in message.content
        if isinstance(part, ToolCallPart) and not part.provider_executed
    ]
    text = "".join(part.text for part in message.content if isinstance(part, TextPart))
    reasoning = [part for part in message.content if isinstance(part, ReasoningPart)]
    item: JsonObject = {"role": "assistant", "content": text or (None if calls else "")}
    item |= _reasoning(reasoning, text, dialect)
    if calls:
        item["tool_calls"] = calls
    return item


def _reasoning(parts: list[ReasoningPart], answer: str, dialect: ChatDialect) -> JsonObject:
    """The fields of an answer that bring its reasoning back."""
    thought = "".join(part.text for part in parts)
    form = dialect.reasoning
    if form == "as_received":
        form = _received_field(parts)
    match form:
        case "reasoning_content" | "reasoning":
            return {form: thought} if thought or dialect.empty_reasoning else {}
        case "reasoning_details":
            details = [detail for part in parts for detail in _details(part)]
            return {"reasoning_details": details} if details else {}
        case "think_text":
            return {"content": f"<think>\n{thought}\n</think>\n{answer}"} if thought else {}
        case "thinking_parts":
            return {"content": _thinking_parts(thought, answer)} if thought else {}
        case _:
            return {}


def _received_field(parts: list[ReasoningPart]) -> str:
    fields = [(part.metadata or {}).get(NAMESPACE, {}).get("field") for part in parts]
    return "reasoning" if "reasoning" in fields else "reasoning_content"


def _details(part: ReasoningPart) -> list[JsonObject]:
    match (part.metadata or {}).get(NAMESPACE, {}).get("reasoning_details"):
        case [*details]:
            return [detail for detail in details if shared.is_object(detail)]
        case _:
            return []


def _thinking_parts(thought: str, answer: str) -> list[JsonObject]:
    thinking: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
    return [thinking, *([{"type": "text", "text": answer}] if answer else [])]


def _call_id(id: str, dialect: ChatDialect) -> str:
    """The call id, or one derived from it if the provider does not take it."""
    own = _SHORT_CALL_ID if dialect.short_call_ids else _CALL_ID
    if own.fullmatch(id):
        return id
    return blake2b(id.encode("utf-8", "surrogatepass")).hexdigest()[:SHORT_CALL_ID_CHARS]


def _tool_results(
    message: LLMMessage, files: list[JsonObject], dialect: ChatDialect
) -> Iterable[JsonObject]:
    for part in message.content:
        if not isinstance(part, ToolResultPart) or part.provider_executed:
            continue
        result = shared.lower_result(part.result)
        texts = [result.text]
        for media in result.media:
            _attach(media, texts, files, dialect)
        content = "\n\n".join(text for text in texts if text)
        call = _call_id(part.id, dialect)
        yield {"role": "tool", "tool_call_id": call, "content": content}
