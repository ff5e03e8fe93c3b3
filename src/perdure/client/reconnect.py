"""Durable events across lost connections, for a caller who asks for that.

The last sequence is kept, and the stream is opened again after it: nothing is missed and nothing
comes twice. What a new connection cannot mend (a declared failure, an answer that makes no sense)
ends it as it would end a plain stream.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from perdure.client.client import PerdureClient
from perdure.client.errors import ClientError
from perdure.client.wire import CallOptions
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_FIRST_PAUSE_SECONDS: Final = 0.1
_PAUSE_SECONDS_MAX: Final = 5.0
_GATEWAY_STATUSES: Final = frozenset({502, 503, 504})


class Reconnected(Value, kw_only=True):
    """A stream that was lost is answered again."""

    after: int | None
    """The last sequence that was seen before."""
    attempts: int
    """How many it took."""
    cause: ClientError | None
    """What the connection was lost to; None if the server ended the stream."""


class OpensEvents(Protocol[T_co]):
    """Opens the events of one Session after a sequence, as `sessions.events` does."""

    def __call__(self, after: int | None, opened: Callable[[], None]) -> AsyncGenerator[T_co]: ...


def resuming_events(
    client: PerdureClient,
    session_id: str,
    *,
    after: int | None = None,
    reconnected: Callable[[Reconnected], None] | None = None,
    options: CallOptions | None = None,
) -> "AsyncGenerator[types.DurableEvent]":
    """Durable events after a sequence, then those to come, for as long as it takes.

    `reconnected` is told each time the stream was lost and is there again.
    """
    given = options or CallOptions()

    def opens(
        after: int | None, opened: Callable[[], None]
    ) -> "AsyncGenerator[types.DurableEvent]":
        options = CallOptions(headers=given.headers, opened=opened)
        return client.sessions.events(session_id, after=after, options=options)

    return resume(opens, lambda event: event["durable"]["seq"], after=after, told=reconnected)


async def resume(
    opens: OpensEvents[T],
    seq_of: Callable[[T], int],
    *,
    after: int | None,
    told: Callable[[Reconnected], None] | None,
) -> AsyncGenerator[T]:
    """The same over whatever opens a stream of events that have a sequence."""
    tries = _Tries(after, told)
    while True:
        try:
            async with aclosing(opens(tries.last, tries.answered)) as events:
                async for event in events:
                    if tries.is_new(seq_of(event)):
                        yield event
            tries.lost(None)
        except ClientError as error:
            if not _passes(error):
                raise
            tries.lost(error)
        await asyncio.sleep(tries.pause)


class _Tries:
    """How far the reader is, and how often in a row the way was closed."""

    def __init__(self, after: int | None, told: Callable[[Reconnected], None] | None) -> None:
        self.last = after
        self._told = told
        self._attempts = 0
        self._cause: ClientError | None = None

    @property
    def pause(self) -> float:
        return min(_FIRST_PAUSE_SECONDS * 2 ** min(self._attempts - 1, 10), _PAUSE_SECONDS_MAX)

    def answered(self) -> None:
        if self._attempts and self._told is not None:
            self._told(Reconnected(after=self.last, attempts=self._attempts, cause=self._cause))

    def is_new(self, seq: int) -> bool:
        # Only what is delivered proves that the way is open: an answer alone may end at once.
        self._attempts = 0
        if self.last is not None and seq <= self.last:
            return False
        self.last = seq
        return True

    def lost(self, cause: ClientError | None) -> None:
        self._attempts += 1
        self._cause = cause


def _passes(error: ClientError) -> bool:
    """Whether a later attempt may succeed."""
    return error.reason == "transport" or error.status in _GATEWAY_STATUSES
