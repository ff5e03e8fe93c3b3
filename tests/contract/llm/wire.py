"""A provider's wire, as the tests that hold for every wire protocol speak it.

Each protocol has one Wire, in its own `wire.py`: how it says what any provider can say, and as
data what only it says. A new one is added to `wires.py`; what holds for all then holds for it too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.error import Reason
from perdure.llm.event import (
    Finish,
    FinishReason,
    LLMEvent,
    ProviderError,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from perdure.llm.route import Credential
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import ProviderMetadata

SECRET: Final = "canary-5f2e9c"
BEARER: Final = Credential(SECRET)
PLAIN: Final = ModelFacts(name="wire-model")


def as_they_are(frames: Sequence[bytes]) -> Sequence[bytes]:
    return frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    offsets: str
    """The figure that counts the bytes at which its answers are split and cut."""
    protocol: WireProtocol
    body_of: Callable[[Sequence[bytes]], bytes]
    """The body that carries these frames."""
    line_ends: Sequence[bytes] = (b"\n", b"\r\n", b"\r")
    """How its servers may end the lines of a body; none, where a body has no lines."""
    payloads: Callable[[Sequence[bytes]], Sequence[bytes]] = as_they_are
    """What a step is given of these frames."""
    begin: Sequence[bytes] = ()
    text: Callable[..., list[bytes]]
    """A whole text: its index, and its words in pieces."""
    half: Sequence[bytes]
    """A text that says `half` and has not ended."""
    call: Callable[..., list[bytes]]
    """A whole call: its index, its id, its name, and its input in pieces."""
    stop: Callable[[str], list[bytes]]
    """The end of an answer that says why it ends: first the reason, last the end of the stream."""
    stops: Mapping[str, FinishReason]
    """The reasons it gives, as we name them. The first one is that there is nothing more to say."""
    for_calls: str
    """The reason it gives when it wants its calls answered."""
    calls_early: bool = False
    """Whether a call is told as soon as it is whole, and not only once the answer is."""
    counted: Usage
    """What `begin` and `stop` count."""
    counted_at_reason: Usage | None
    """What is counted when the reason is the last thing that comes."""
    text_id: str = "text-0"
    everything: Sequence[bytes]
    """One long answer that has everything in it."""
    everything_is: Sequence[LLMEvent]
    recordings: Mapping[str, Sequence[bytes]]
    """Whole answers, to be split and cut at every byte."""
    ends: Mapping[str, int] = field(default_factory=dict[str, int])
    """Recordings whose last frames differ from `stop`: with how many of them missing, less one, the
    answer is still whole."""
    cut_call: Sequence[bytes]
    """An answer that is cut off, for its length, before the input of a call begins."""
    error: Callable[[str], bytes]
    """A failure inside the stream that says this."""
    errors: Sequence[tuple[bytes, str, Reason]]
    """Failures inside the stream: what we say of them, and what they are."""
    refusals: Sequence[tuple[int, JsonObject, Reason]]
    """Failures instead of a stream: their status, their body, and what they are."""
    counts: Sequence[tuple[Sequence[bytes], Usage | None]]
    """Whole answers without words: what we count of what they count."""
    silent: Sequence[bytes]
    """Frames that say nothing."""
    junk: Sequence[bytes]
    """What a step cannot be given, beside what no protocol takes."""
    broken: Sequence[tuple[bytes, str]] = ()
    """Sound frames where none of their kind may stand, and how we name the fault."""
    unsigned: Sequence[bytes] = ()
    """An answer that is cut off before its reasoning is signed."""
    hosted_once: Sequence[bytes] = ()
    """An answer with one call that the provider ran, and more results than that one."""
    base_path: str = "/v1"
    facts: ModelFacts = PLAIN
    credential: Credential = BEARER

    @property
    def why(self) -> str:
        """The reason it gives when there is nothing more to say."""
        return next(iter(self.stops))

    def heard(self, frames: Sequence[bytes]) -> list[LLMEvent]:
        """What comes of whole frames, without the end of the stream."""
        state = self.protocol.start()
        return [e for data in self.payloads(frames) for e in self.protocol.step(state, data)]

    def answered(self, frames: Sequence[bytes]) -> list[LLMEvent]:
        """What comes of a whole stream."""
        state = self.protocol.start()
        events = [e for data in self.payloads(frames) for e in self.protocol.step(state, data)]
        if not (events and isinstance(events[-1], Finish | ProviderError)):
            events += self.protocol.finish(state)
        return events


def spoken(id: str, *deltas: str) -> list[LLMEvent]:
    return [TextStart(id), *(TextDelta(id, delta) for delta in deltas), TextEnd(id)]


def thought(
    id: str,
    *deltas: str,
    known: ProviderMetadata | None = None,
    kept: ProviderMetadata | None = None,
) -> list[LLMEvent]:
    """Reasoning with what is `known` of it when it begins, and what is `kept` of it."""
    pieces = [ReasoningDelta(id, delta) for delta in deltas]
    return [ReasoningStart(id, known), *pieces, ReasoningEnd(id, kept)]


def asked(id: str, name: str, *pieces: str) -> list[LLMEvent]:
    """The input of a call, piece by piece and then whole."""
    deltas = [ToolInputDelta(id, piece) for piece in pieces]
    return [ToolInputStart(id, name), *deltas, ToolInputEnd(id, "".join(pieces))]


def calls_in(events: Sequence[LLMEvent]) -> list[tuple[str, str, JsonValue]]:
    return [(e.id, e.name, e.input) for e in events if isinstance(e, ToolCall)]
