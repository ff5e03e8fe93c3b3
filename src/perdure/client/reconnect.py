"""Reads the durable events of a Session across lost connections.

The reader keeps the last sequence number and opens the stream again after it, so that it misses
nothing and sees nothing twice. A failure that a new connection cannot repair (a declared failure, a
malformed answer) ends it, as it ends a plain stream.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from perdure.client.errors import ClientError
from perdure.client.wire import CallOptions
from perdure.client.wire_client import WireClient
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_FIRST_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 5.0
_GATEWAY_STATUSES: Final = frozenset({502, 503, 504})


class Reconnected(Value, kw_only=True):
    """A lost stream was opened again."""

    after: int | None
    """The last sequence that was read before."""
    attempts: int
    """How many attempts it took."""
    cause: ClientError | None
    """Why the connection was lost; None if the server ended the stream."""


class OpensEvents(Protocol[T_co]):
    """Opens the events of one Session after a sequence, as `sessions.events` does."""

    def __call__(self, after: int | None, opened: Callable[[], None]) -> AsyncGenerator[T_co]: ...


def resume_wire_events(
    client: WireClient,
    session_id: str,
    *,
    after: int | None = None,
    reconnected: Callable[[Reconnected], None] | None = None,
    options: CallOptions | None = None,
) -> "AsyncGenerator[types.DurableEvent]":
    """As `perdure.resume_events`, with events as plain JSON."""
    given = options or CallOptions()

    def opens(
        after: int | None, opened: Callable[[], None]
    ) -> "AsyncGenerator[types.DurableEvent]":
        options = CallOptions(headers=given.headers, opened=opened, replayed=given.replayed)
        return client.sessions.events(session_id, after=after, options=options)

    return resume(opens, lambda event: event["durable"]["seq"], after=after, notify=reconnected)


async def resume(
    opens: OpensEvents[T],
    seq_of: Callable[[T], int],
    *,
    after: int | None,
    notify: Callable[[Reconnected], None] | None,
) -> AsyncGenerator[T]:
    """The events that `opens` gives, opened again after each lost connection."""
    tries = _Tries(after, notify)
    while True:
        try:
            async with aclosing(opens(tries.last, tries.answered)) as events:
                async for event in events:
                    if tries.is_new(seq_of(event)):
                        yield event
            tries.lost(None)
        except ClientError as error:
            if not may_recover(error):
                raise
            tries.lost(error)
        await asyncio.sleep(tries.pause)


class _Tries:
    """The last sequence that was read, and the failed attempts since."""

    def __init__(self, after: int | None, notify: Callable[[Reconnected], None] | None) -> None:
        self.last = after
        self._notify = notify
        self._attempts = 0
        self._cause: ClientError | None = None

    @property
    def pause(self) -> float:
        return min(_FIRST_PAUSE_SECONDS * 2 ** min(self._attempts - 1, 10), _PAUSE_SECONDS_MAX)

    def answered(self) -> None:
        if self._attempts and self._notify is not None:
            self._notify(Reconnected(after=self.last, attempts=self._attempts, cause=self._cause))

    def is_new(self, seq: int) -> bool:
        # Only an event proves that the connection works: an answered stream may end at once.
        self._attempts = 0
        if self.last is not None and seq <= self.last:
            return False
        self.last = seq
        return True

    def lost(self, cause: ClientError | None) -> None:
        self._attempts += 1
        self._cause = cause


def may_recover(error: ClientError) -> bool:
    """Whether a later attempt may succeed."""
    return error.reason == "transport" or error.status in _GATEWAY_STATUSES
