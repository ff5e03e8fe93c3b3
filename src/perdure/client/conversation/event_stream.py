"""The live events of one Session, with the durable ones that a lost connection left out.

Invariant: every durable event is given once and in order.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar

from perdure.client.conversation.requests import RequestAnswers
from perdure.client.conversation.tasks import only_error
from perdure.client.errors import ClientError
from perdure.client.generated.typed_groups import TypedGroups
from perdure.client.reconnect import may_recover
from perdure.client.typed_events import DurableEvent, LiveEvent
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.errors import ServiceUnavailableError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.live_event import ServerLagged

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.5
SECONDS_AWAY_MAX: Final = 60.0
"""Seconds for which a call is repeated while the server cannot be reached; then it fails."""
_EVENTS_WAITING_MAX: Final = 1_000


class _Gap:
    """The live stream was lost and is open again: what happened meanwhile is in the log."""


class EventStream:
    """The live events of one Session, with those that a lost connection left out."""

    def __init__(
        self, client: TypedGroups, session_id: SessionID, requests: RequestAnswers
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._requests = requests
        self._queue: asyncio.Queue[LiveEvent | _Gap | asyncio.Task[None]] = asyncio.Queue()
        self.opened = asyncio.Event()

    async def read(self) -> None:
        """Read until cancelled; a lost stream is opened again."""
        away = 0.0
        while True:
            try:
                async with aclosing(self._client.events.subscribe()) as events:
                    # The first event confirms the subscription.
                    await anext(events, None)
                    away = 0.0
                    if self.opened.is_set():
                        self._queue.put_nowait(_Gap())
                    self.opened.set()
                    await self._forward(events)
            except ClientError as error:
                if not may_recover(error) or away > SECONDS_AWAY_MAX:
                    raise
            away += PAUSE_SECONDS
            await asyncio.sleep(PAUSE_SECONDS)

    def end_with(self, *tasks: "asyncio.Task[None]") -> None:
        """End when one of the tasks does; raise what it raises."""
        for task in tasks:
            task.add_done_callback(self._queue.put_nowait)

    async def events(self, *, after: Seq) -> AsyncGenerator[LiveEvent]:
        """Live events, and durable ones after a sequence."""
        seen = after
        while True:
            item = await self._queue.get()
            if isinstance(item, LiveEvent):
                if item.durable is None:
                    yield item
                elif item.durable.seq > seen:
                    seen = item.durable.seq
                    yield item
                continue
            if isinstance(item, asyncio.Task):
                _raise_failure(item)
            async with aclosing(self._missed(seen)) as missed:
                async for event in missed:
                    seen = event.durable.seq
                    yield _as_live(event)
            if isinstance(item, asyncio.Task):
                return

    async def _forward(self, events: AsyncGenerator[LiveEvent]) -> None:
        async for event in events:
            if isinstance(event.data, PermissionRequest | QuestionRequest):
                self._requests.look()
            if isinstance(event.data, ServerLagged):
                return
            if _session_of(event) == self._session_id:
                if self._queue.qsize() > _EVENTS_WAITING_MAX:
                    # The reader is slower than the model; it gets the rest from the log.
                    return
                self._queue.put_nowait(event)

    async def _missed(self, after: Seq) -> AsyncGenerator[DurableEvent]:
        has_more = True
        while has_more:
            read = partial(self._client.sessions.history, self._session_id, after=after)
            page = await patiently(read)
            for event in page.items:
                after = event.durable.seq
                yield event
            has_more = page.has_more


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """The result of a call, which is made again while the server is away, stops or is blocked."""
    away = 0.0
    while True:
        try:
            return await call()
        except (ClientError, ServiceUnavailableError) as error:
            away += PAUSE_SECONDS
            passes = isinstance(error, ServiceUnavailableError) or may_recover(error)
            if not passes or away > SECONDS_AWAY_MAX:
                raise
            await asyncio.sleep(PAUSE_SECONDS)


def _session_of(event: LiveEvent) -> SessionID | None:
    if event.durable is not None:
        return event.durable.aggregate_id
    found: SessionID | None = getattr(event.data, "session_id", None)
    return found


def _as_live(event: DurableEvent) -> LiveEvent:
    return LiveEvent(
        id=event.id,
        type=event.type,
        data=event.data,
        durable=event.durable,
        location=event.location,
    )


def _raise_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise only_error(error)
