"""Anthropic Messages: the events of a stream as they are written, and the counts in them.

Pure. Decoding is lenient: unknown fields are skipped, and what may be left out may be. What the
events mean together is decided in anthropic_messages_stream.
"""

from typing import Final

import msgspec

from perdure.llm.encoding import provider_json
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

_TOKENS_MAX: Final = 2**53
_NOT_GIVEN: Final = (b"", b"null")


class Delta(msgspec.Struct, gc=False):
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class Content(msgspec.Struct, gc=False):
    """What a content block starts with."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: JsonValue = None
    tool_use_id: str | None = None
    content: JsonValue = None


class Message(msgspec.Struct, gc=False):
    usage: msgspec.Raw = msgspec.Raw()


class Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: Content | None = None
    message: Message | None = None
    usage: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()

    @property
    def is_error(self) -> bool:
        return self.type == "error" or bytes(self.error) not in _NOT_GIVEN


_EVENT: Final = msgspec.json.Decoder(Event)


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _Counts(msgspec.Struct, omit_defaults=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


def decode(data: bytes) -> Event:
    """Raises LLMError for what is not an event."""
    return provider_json.decode(_EVENT, data, "an event")


def counted(raw: msgspec.Raw) -> JsonObject:
    """The counts that `raw` gives, by their wire names; nothing of odd ones, worth no turn."""
    if bytes(raw) in _NOT_GIVEN:
        return {}
    try:
        return codec.to_json_value(codec.decode(_Counts, bytes(raw)))
    except msgspec.DecodeError:
        return {}


def usage_of(counts: JsonObject) -> Usage | None:
    """`input_tokens` is without cache here; thinking is part of the output."""
    usage = codec.convert(_Counts, counts)
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    details = usage.output_tokens_details or _OutputDetails()
    output = _tokens(usage.output_tokens)
    reasoning = min(_tokens(details.thinking_tokens), output)
    return Usage(
        input=_tokens(usage.input_tokens),
        output=output - reasoning,
        reasoning=reasoning,
        cache_read=_tokens(usage.cache_read_input_tokens),
        cache_write=_tokens(usage.cache_creation_input_tokens),
    )


def _tokens(count: int | None) -> int:
    return max(0, min(count or 0, _TOKENS_MAX))
