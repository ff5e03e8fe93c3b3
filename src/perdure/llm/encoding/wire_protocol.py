"""A wire protocol: pure functions between our values and one provider's bytes.

`encode` and `step` perform no input or output; a recorded stream is therefore a unit test. The
conversation is encoded run by run. A EncodedHistory remembers the bytes of runs that are over,
so that a long history costs nothing to send anew. A protocol with cache hints marks the latest
user message: that run and those after it are encoded anew each time.

Invariant: the bytes of a run depend on it and on what stands before it, never on what follows.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final, Protocol

from msgspec import field

from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.event import LLMEvent
from perdure.llm.message import Segment
from perdure.llm.request import LLMRequest
from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

State = Any
"""Whatever a protocol keeps between frames; opaque to everyone else."""


class ModelFacts(Value, kw_only=True):
    """What an encoding depends on beside the request. Fixed for a model."""

    name: str
    """The model's name on the provider's wire."""
    output_limit: int = 0
    """The most tokens it writes; 0 is unknown."""
    system_role: bool = False
    """Whether a system message may stand inside the conversation."""


class SegmentPosition(Value):
    """Where a run stands. It stays there while the conversation grows."""

    index: int
    before: Segment | None


class FrameReader(Protocol):
    """Raises sse.FrameTooLargeError when a frame is larger than it may be."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """The frames that a piece of the body completes."""
        ...


class SseFrames:
    """The data of each server-sent event."""

    def __init__(self, bytes_max: int) -> None:
        self._reader = sse.Reader(bytes_max=bytes_max)

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        return map(_DATA, self._reader.feed(chunk))


_DATA: Final[Callable[[sse.Frame], bytes]] = attrgetter("data")


def _nothing(request: LLMRequest) -> list[JsonObject]:
    return []


def _always(facts: ModelFacts) -> bool:
    return True


class WireProtocol(Value, kw_only=True):
    name: str
    path: Callable[[str], str]
    """Where requests for a model of that name go, below the provider's base URL."""
    conversation_field: str
    """The body's key that holds the conversation items."""
    head: Callable[[LLMRequest, ModelFacts], JsonObject]
    """Everything of the body but the conversation."""
    opening: Callable[[LLMRequest], list[JsonObject]]
    """Conversation items that come before the runs (a system message, where it is one)."""
    items: Callable[[Segment, ModelFacts], list[JsonObject]]
    """The conversation items of one run."""
    start: Callable[[], State]
    step: Callable[[State, bytes], tuple[LLMEvent, ...]]
    """Take one frame's data into the state; return what it completes."""
    finish: Callable[[State], tuple[LLMEvent, ...]]
    """The stream has ended: what is still open. Ends with Finish or ProviderError, or raises."""
    closing: Callable[[LLMRequest], list[JsonObject]] = _nothing
    """Conversation items that come after the runs, where the runs may not be the end."""
    placed: Callable[[list[JsonObject], SegmentPosition], list[JsonObject]] | None = None
    """The items of a run as they may stand there, where a provider is strict about processes."""
    marked: Callable[[list[JsonObject]], list[JsonObject]] | None = None
    """The items of the run with the latest user message, with a cache hint on that message."""
    takes_hints: Callable[[ModelFacts], bool] = _always
    """Whether a model takes cache hints, where there are any."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = "text/event-stream"
    frames: Callable[[int], FrameReader] = SseFrames


def encode(protocol: WireProtocol, request: LLMRequest, facts: ModelFacts) -> tuple[bytes, ...]:
    """The request body as pieces to write one after the other."""
    head = codec.encode(protocol.head(request, facts))
    opening, closing = _joined(protocol.opening(request)), _joined(protocol.closing(request))
    body = [head[:-1], b',"%s":[' % protocol.conversation_field.encode()]
    # `head` is a non-empty JSON object: the conversation goes in before its closing brace.
    for piece in filter(None, (opening, *_conversation(protocol, request, facts), closing)):
        body += (piece, b",")
    if len(body) > 2:
        body.pop()
    return (*body, b"]}")


def _conversation(
    protocol: WireProtocol, request: LLMRequest, facts: ModelFacts
) -> tuple[bytes, ...]:
    kept = request.kept or EncodedHistory()
    key, runs = (protocol.name, facts), request.runs

    def items(index: int) -> list[JsonObject]:
        listed = protocol.items(runs[index], facts)
        if protocol.placed is None:
            return listed
        return protocol.placed(listed, SegmentPosition(index, runs[index - 1] if index else None))

    def encoded(index: int) -> bytes:
        return _joined(items(index))

    at = _latest_user(runs)
    if protocol.marked is None or at is None or not protocol.takes_hints(facts):
        return kept.pieces(key, range(len(runs)), encoded)
    marked = _joined(protocol.marked(items(at)))
    after = tuple(encoded(index) for index in range(at + 1, len(runs)))
    return (*kept.pieces(key, range(at), encoded, open_last=False), marked, *after)


def _latest_user(runs: tuple[Segment, ...]) -> int | None:
    for index in range(len(runs) - 1, -1, -1):
        if any(message.role == "user" for message in runs[index].messages):
            return index
    return None


def _joined(items: list[JsonObject]) -> bytes:
    return b",".join(codec.encode(item) for item in items)
