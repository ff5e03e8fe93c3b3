"""A wire protocol: pure functions between provider-neutral values and one provider's bytes.

`encode` and `step` do no I/O, so a recorded stream is a unit test. The conversation is encoded
segment by segment. An EncodedHistory caches the bytes of closed segments, so that a long history
need not be encoded again. If a model takes cache marks, the last segments, which have them, stay
open.

Invariant: the bytes of a segment depend on it and on earlier ones, never on later ones.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec
from msgspec import field

from perdure.llm.encoded_history import EncodedHistory, encode_items
from perdure.llm.encoding import cache_marks
from perdure.llm.encoding.cache_marks import Marker
from perdure.llm.encoding.chat_dialect import DEFAULT_DIALECT, ChatDialect
from perdure.llm.event import LLMEvent
from perdure.llm.message import Segment
from perdure.llm.request import LLMRequest
from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

State = Any
"""The state of a protocol between frames; opaque to callers."""


class ModelFacts(Value, kw_only=True):
    """Facts about the model that the encoding depends on."""

    name: str
    """The model's name on the provider's wire."""
    output_limit: int = 0
    """Maximum output tokens; 0 if unknown."""
    system_role: bool = False
    """Whether the conversation may contain system messages."""
    dialect: ChatDialect = DEFAULT_DIALECT
    """What its provider takes, if it is asked with Chat Completions."""


class SegmentPosition(Value):
    """The position of a segment, which does not change while the conversation grows."""

    index: int
    before: Segment | None


class FrameReader(Protocol):
    """Splits a body into frames. Raises sse.FrameTooLargeError."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """The frames that a chunk of the body completes."""
        ...

    def rest(self) -> Iterable[bytes]:
        """The frame that the body ended without its end mark, if all of it came."""
        ...


class SseFrames:
    """The data of each server-sent event."""

    def __init__(self, bytes_max: int) -> None:
        self._reader = sse.Reader(bytes_max=bytes_max)

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        return self._reader.feed_data(chunk)

    def rest(self) -> Iterable[bytes]:
        # Some servers send no blank line after the last event, which is then cut off or whole.
        data = self._reader.rest()
        return (data,) if _is_whole(data) else ()


def _is_whole(data: bytes) -> bool:
    if data == DONE:
        return True
    if not data.startswith(b"{"):
        return False
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


DONE: Final = b"[DONE]"
"""The last event of an OpenAI stream."""


def _nothing(request: LLMRequest) -> list[JsonObject]:
    return []


def _no_marker(request: LLMRequest, facts: ModelFacts) -> Marker | None:
    return None


class WireProtocol(Value, kw_only=True):
    name: str
    path: Callable[[str], str]
    """URL path for a model name, relative to the provider's base URL."""
    conversation_field: str
    """The body field of the conversation items."""
    head: Callable[[LLMRequest, ModelFacts], JsonObject]
    """The body without the conversation."""
    opening: Callable[[LLMRequest, ModelFacts], list[JsonObject]]
    """Conversation items before the segments, such as a system message."""
    items: Callable[[Segment, ModelFacts], list[JsonObject]]
    """The conversation items of one segment."""
    start: Callable[[], State]
    step: Callable[[State, bytes], tuple[LLMEvent, ...]]
    """Process one frame; returns the events that it completes."""
    finish: Callable[[State], tuple[LLMEvent, ...]]
    """Events at the end of the stream. Ends with Finish or ProviderError, or raises."""
    recover: Callable[[bytes], tuple[LLMEvent, ...]] | None = None
    """The answer that the body of a refusal stands for, ended with Finish; empty for none."""
    closing: Callable[[LLMRequest], list[JsonObject]] = _nothing
    """Conversation items after the segments."""
    adapted: Callable[[list[JsonObject], SegmentPosition], list[JsonObject]] | None = None
    """Adapts items to their position, for providers that restrict adjacent items."""
    marker: Callable[[LLMRequest, ModelFacts], Marker | None] = _no_marker
    """Puts cache marks into the conversation; None for models that take none."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = "text/event-stream"
    frames: Callable[[int], FrameReader] = SseFrames


def encode(protocol: WireProtocol, request: LLMRequest, facts: ModelFacts) -> tuple[bytes, ...]:
    """The request body, in pieces to be written in order."""
    head = codec.encode(protocol.head(request, facts))
    # `head` is a non-empty JSON object: the conversation is inserted before its closing brace.
    body = [head[:-1], b',"%s":[' % protocol.conversation_field.encode()]
    if opening := protocol.opening(request, facts):
        body.append(encode_items(opening))
    body += _conversation(protocol, request, facts)
    if len(body) > 2:
        body[-1] = body[-1][:-1]
    return (*body, b"]}")


def _conversation(protocol: WireProtocol, request: LLMRequest, facts: ModelFacts) -> list[bytes]:
    """The segments and what closes them, each piece with a comma at its end."""
    history = request.encoded_history or EncodedHistory()
    key, segments = (protocol.name, facts), request.segments

    def items(index: int) -> list[JsonObject]:
        listed = protocol.items(segments[index], facts)
        if protocol.adapted is None:
            return listed
        return protocol.adapted(
            listed, SegmentPosition(index, segments[index - 1] if index else None)
        )

    mark = protocol.marker(request, facts)
    closed, last = history.extend(
        key, segments, items, open_count=1 if mark is None else cache_marks.TAIL_SEGMENTS
    )
    last += protocol.closing(request)
    if mark is not None:
        last = cache_marks.mark_ends(last, mark)
    return [*closed, encode_items(last)] if last else closed
