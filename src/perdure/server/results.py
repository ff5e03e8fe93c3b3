"""Results that a handler may return beside plain values, each typed with what it carries.

Stored JSON is sent as it is: `Encoded[SessionInfo]` is the JSON text of a SessionInfo. The type
parameter is not needed to send a result; `server.binding` compares it with the Endpoint's.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.location.workspace.terminals import Attachment
    from perdure.schema.live_event import LiveEvent

T = TypeVar("T")


class Encoded(Value, Generic[T]):
    """The JSON of one T."""

    json: bytes


class NoContent(Value):
    """An answer without a body that has something to say in its headers."""

    headers: tuple[tuple[bytes, bytes], ...]


class EncodedPage(Value, Generic[T], kw_only=True):
    """One page of T, each item as JSON, with the cursors of the pages before and after it."""

    items: tuple[bytes, ...]
    previous: str | None = None
    next: str | None = None


class EncodedHistory(Value, Generic[T]):
    """Durable events as JSON, oldest first, and whether there are more after them."""

    items: tuple[bytes, ...]
    has_more: bool


class DurableStream(Value, Generic[T]):
    """Server-sent events of the log. Each item of `frames` is one or more complete frames."""

    frames: AsyncIterator[bytes]


class FrameReader(Protocol):
    """Reads whole frames; `lagged` once it fell too far behind."""

    @property
    def lagged(self) -> bool: ...

    async def next(self) -> bytes | None: ...


class Framing(Value):
    """The form of the stream's own events and of its heartbeat."""

    event: "Callable[[LiveEvent], bytes]"
    heartbeat: Callable[[], bytes]


class LiveStream(Value, Generic[T]):
    """Server-sent events that are not stored; `subscribe` starts listening."""

    subscribe: Callable[[], AbstractContextManager[FrameReader]]
    framing: Framing | None = None
    """None for the frames of V2."""


class TerminalConnection(Value):
    """A terminal to connect a WebSocket to; `attach` starts reading it."""

    attach: "Callable[[], AbstractContextManager[Attachment]]"


def join_array(items: Iterable[bytes]) -> bytes:
    """The JSON array of items that are JSON already."""
    return b"[" + b",".join(items) + b"]"
