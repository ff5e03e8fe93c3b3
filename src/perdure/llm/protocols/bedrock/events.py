"""Bedrock Converse: stream events and token counts.

Decoding is lenient: unknown fields are skipped, and optional ones may be missing. Framing is
llm.aws.event_stream; `stream` interprets the events.
"""

from typing import Final

import msgspec

from perdure.llm.encoding import provider_json
from perdure.llm.event import Usage
from perdure.schema import codec
from perdure.schema.codec import JsonValue

_TOKENS_MAX: Final = 2**53


class ReasoningPiece(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class InputPiece(msgspec.Struct, gc=False):
    input: str | None = None


class Delta(msgspec.Struct, gc=False, rename="camel"):
    text: str | None = None
    tool_use: InputPiece | None = None
    reasoning_content: ReasoningPiece | None = None
    tool_result: list[JsonValue] | None = None


class BlockDelta(msgspec.Struct, gc=False, rename="camel"):
    content_block_index: int = 0
    delta: Delta | None = None


class ToolUse(msgspec.Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    name: str | None = None
    type: str | None = None


class ToolResult(msgspec.Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    type: str | None = None
    status: str | None = None


class Start(msgspec.Struct, gc=False, rename="camel"):
    tool_use: ToolUse | None = None
    tool_result: ToolResult | None = None


class BlockStart(msgspec.Struct, gc=False, rename="camel"):
    content_block_index: int = 0
    start: Start | None = None


class BlockStop(msgspec.Struct, gc=False, rename="camel"):
    content_block_index: int = 0


class MessageStop(msgspec.Struct, gc=False, rename="camel"):
    stop_reason: str | None = None


class Metadata(msgspec.Struct, gc=False):
    usage: msgspec.Raw = msgspec.Raw()


class Event(msgspec.Struct, gc=False, rename="camel"):
    """At most one of these fields is set."""

    content_block_delta: BlockDelta | None = None
    content_block_start: BlockStart | None = None
    content_block_stop: BlockStop | None = None
    message_stop: MessageStop | None = None
    metadata: Metadata | None = None
    exception: str | None = None
    payload: msgspec.Raw = msgspec.Raw()


_EVENT: Final = msgspec.json.Decoder(Event)


class _CacheDetail(msgspec.Struct, rename="camel"):
    ttl: str | None = None
    input_tokens: int | None = None


class _Counts(msgspec.Struct, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None
    cache_details: list[_CacheDetail] | None = None


def decode(data: bytes) -> Event:
    """Decode an event. Raises LLMError."""
    return provider_json.decode(_EVENT, data, "an event")


def usage_of(metadata: Metadata) -> Usage | None:
    """The usage. Input excludes the cache; output includes reasoning."""
    try:
        counts = codec.decode(_Counts, bytes(metadata.usage))
    except msgspec.DecodeError:
        # Invalid counts must not fail a turn.
        return None
    if counts.input_tokens is None and counts.output_tokens is None:
        return None
    details = counts.cache_details or ()
    return Usage(
        input=_tokens(counts.input_tokens),
        output=_tokens(counts.output_tokens),
        cache_read=_tokens(counts.cache_read_input_tokens),
        cache_write=(written := _tokens(counts.cache_write_input_tokens)),
        cache_write_hour=min(
            sum(_tokens(part.input_tokens) for part in details if part.ttl == "1h"), written
        ),
    )


def _tokens(count: int | None) -> int:
    return max(0, min(count or 0, _TOKENS_MAX))
