"""A wire protocol: pure functions between our values and one provider's JSON.

`encode` and `step` perform no input or output; a recorded stream is therefore a unit test. The
conversation is encoded run by run, and a run's bytes are kept with it (see llm.message.Run).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from perdure.llm.event import LLMEvent
from perdure.llm.message import Run
from perdure.llm.request import LLMRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject

State = Any
"""Whatever a protocol keeps between frames; opaque to everyone else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireProtocol:
    name: str
    path: str
    """Where requests go, below the provider's base URL."""
    conversation_field: str
    """The body's key that holds the conversation items."""
    head: Callable[[LLMRequest, str], JsonObject]
    """Everything of the body but the conversation; the string is the model's name on the wire."""
    opening: Callable[[LLMRequest], list[JsonObject]]
    """Conversation items that come before the runs (a system message, where it is one)."""
    items: Callable[[Run], list[JsonObject]]
    """The conversation items of one run."""
    start: Callable[[], State]
    step: Callable[[State, bytes], tuple[LLMEvent, ...]]
    """Take one frame's data into the state; return what it completes."""
    finish: Callable[[State], tuple[LLMEvent, ...]]
    """The stream has ended: what is still open. Ends with Finish or ProviderError, or raises."""


def encode(protocol: WireProtocol, request: LLMRequest, model_name: str) -> tuple[bytes, ...]:
    """The request body as pieces to write; closed runs contribute their kept bytes."""
    head = codec.encode(protocol.head(request, model_name))
    pieces = [codec.encode(item) for item in protocol.opening(request)]
    pieces += (_run_bytes(protocol, run) for run in request.runs)
    conversation = b",".join(piece for piece in pieces if piece)
    # `head` is a non-empty JSON object: the conversation goes in before its closing brace.
    opening = b',"%s":[' % protocol.conversation_field.encode()
    return (head[:-1], opening, conversation, b"]}")


def _run_bytes(protocol: WireProtocol, run: Run) -> bytes:
    kept = run.encoded.get(protocol.name)
    if kept is None:
        kept = b",".join(codec.encode(item) for item in protocol.items(run))
        run.encoded[protocol.name] = kept
    return kept
