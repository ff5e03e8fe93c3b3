"""A wire protocol: pure functions between our values and one provider's JSON.

`encode` and `step` perform no input or output; a recorded stream is therefore a unit test. The
conversation is encoded run by run. A KeptConversation remembers the bytes of runs that are over,
so that a long history costs nothing to send anew.
"""

from collections.abc import Callable
from typing import Any

from perdure.llm.event import LLMEvent
from perdure.llm.kept_conversation import KeptConversation
from perdure.llm.message import Run
from perdure.llm.request import LLMRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

State = Any
"""Whatever a protocol keeps between frames; opaque to everyone else."""


class WireProtocol(Value, kw_only=True):
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
    """The request body as pieces to write one after the other."""
    head = codec.encode(protocol.head(request, model_name))
    opening = b",".join(codec.encode(item) for item in protocol.opening(request))
    kept = request.kept or KeptConversation()
    pieces = [opening, *kept.pieces(protocol.name, request.runs, protocol.items)]
    body = [head[:-1], b',"%s":[' % protocol.conversation_field.encode()]
    # `head` is a non-empty JSON object: the conversation goes in before its closing brace.
    for piece in filter(None, pieces):
        body += (piece, b",")
    if len(body) > 2:
        body.pop()
    return (*body, b"]}")
