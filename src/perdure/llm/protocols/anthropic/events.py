"""Anthropic Messages: stream events and token counts.

Decoding is lenient: unknown fields are skipped, and optional ones may be missing. `stream`
interprets the events.
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
    content: str | None = None
    stop_reason: str | None = None


class Content(msgspec.Struct, gc=False):
    """The start of a content block."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: JsonValue = None
    tool_use_id: str | None = None
    server_name: str | None = None
    is_error: bool | None = None
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


class _CacheCreation(msgspec.Struct):
    ephemeral_1h_input_tokens: int | None = None


class _Counts(msgspec.Struct, omit_defaults=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _CacheCreation | None = None
    output_tokens_details: _OutputDetails | None = None


def decode(data: bytes) -> Event:
    """Decode an event. Raises LLMError."""
    return provider_json.decode(_EVENT, data, "an event")


def counted(raw: msgspec.Raw) -> JsonObject:
    """The counts by their wire names; empty if invalid, because they must not fail a turn.

    Counts of nothing are left out: some servers count the input only at the start, some at the end.
    """
    if bytes(raw) in _NOT_GIVEN:
        return {}
    try:
        counts = codec.to_json_value(codec.decode(_Counts, bytes(raw)))
    except msgspec.DecodeError:
        return {}
    return {name: value for name, value in counts.items() if value != 0}


def usage_of(counts: JsonObject) -> Usage | None:
    """The usage. `input_tokens` excludes the cache; `output_tokens` includes thinking."""
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
        cache_write=(written := _tokens(usage.cache_creation_input_tokens)),
        cache_write_hour=min(
            _tokens((usage.cache_creation or _CacheCreation()).ephemeral_1h_input_tokens), written
        ),
    )


def _tokens(count: int | None) -> int:
    return max(0, min(count or 0, _TOKENS_MAX))
