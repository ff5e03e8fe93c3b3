"""Slots for requests to providers with configured limits, shared by Sessions and processes.

A turn takes its slot before its request is marked as dispatched: while it waits, nothing was sent,
and a process that takes the Session over sends the request. The slot is free when the answer is
complete, before its tools have run: a subagent may need one. Requests of one process wait in the
order in which they came.

Invariant: without configured limits nothing is read, written or waited for.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from perdure.core import limits
from perdure.core.models.provider_limits import NO_LIMITS
from perdure.llm.event import Finish, LLMEvent, Usage
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.location.models.catalog import ResolvedModel
from perdure.net.streams import close_stream
from perdure.ports import Clock, Database, DatabaseError, Processes, Transaction
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.tasks import shielded
from perdure.schema.ids import SessionID
from perdure.schema.live_event import StatusChanged
from perdure.schema.session.status import SessionBusy, SessionRetrying, SessionStatus
from perdure.store.tables import provider_request_table

logger = logging.getLogger(__name__)

_TOLD_AGAIN_MILLIS: Final = 1_000


class ProviderSlots:
    def __init__(
        self, database: Database, processes: Processes, clock: Clock, hub: LiveHub
    ) -> None:
        self._database = database
        self._processes = processes
        self._clock = clock
        self._hub = hub
        self._queues: dict[str, asyncio.Lock] = {}
        self._ended: dict[int, tuple[int | None, int]] = {}
        """Requests that have ended: their tokens and when, until that is stored."""

    @asynccontextmanager
    async def take(
        self, model: ResolvedModel, *, tokens: int, session_id: SessionID | None = None
    ) -> AsyncGenerator[ModelCall]:
        """Wait until a request of so many tokens may be sent; the model's call, to send it once.

        The slot is free when the answer or the scope ends, whichever is first. The wait is shown
        as the status of `session_id`.
        """
        if model.limits == NO_LIMITS:
            yield model.call
            return
        slot = _Slot(self, model.call, await self._begin(model, tokens, session_id))
        try:
            yield slot.call
        finally:
            await shielded(slot.release())

    def limited(self, model: ResolvedModel, *, tokens: int) -> ModelCall:
        """The model's call, for requests beside the conversation: it waits for a slot by itself."""

        async def asked(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
            async with self.take(model, tokens=tokens) as call:
                stream = call(request)
                try:
                    async for batch in stream:
                        yield batch
                finally:
                    await close_stream(stream)

        return model.call if model.limits == NO_LIMITS else asked

    async def end(self, number: int, tokens: int | None) -> None:
        """The request has ended. Never fails: what cannot be stored now is stored with the next."""
        self._ended[number] = tokens, self._clock.now_millis()
        try:
            await self._database.write(self._store_ended, committed=self._forget_ended)
        except DatabaseError as error:
            logger.warning("the end of a request is not stored yet: %s", error)

    async def _begin(self, model: ResolvedModel, tokens: int, session_id: SessionID | None) -> int:
        provider_id, told = model.ref.provider_id, 0
        async with self._queues.setdefault(provider_id, asyncio.Lock()):
            while True:
                number, wait = await self._try(model, tokens)
                if number is not None:
                    if told and session_id is not None:
                        self._tell(session_id, SessionBusy())
                    return number
                due = self._clock.now_millis() + wait
                if session_id is not None and abs(due - told) > _TOLD_AGAIN_MILLIS:
                    told = due
                    message = f"The configured limits of {provider_id} are reached"
                    self._tell(session_id, SessionRetrying(0, message, due))
                await self._clock.sleep(min(wait / 1000, limits.SLOT_WAIT_SECONDS))

    async def _try(self, model: ResolvedModel, tokens: int) -> tuple[int | None, int]:
        processes, now = self._processes, self._clock.now_millis()
        taken: list[tuple[int | None, int]] = []

        async def job(tx: Transaction) -> tuple[int | None, int]:
            await self._store_ended(tx)
            return await provider_request_table.begin(
                tx,
                model.ref.provider_id,
                model.limits,
                tokens=tokens,
                process=processes.me,
                alive=processes.alive,
                now=now,
            )

        try:
            return await self._database.write(job, committed=taken.append)
        except asyncio.CancelledError:
            if taken and taken[0][0] is not None:
                # Interrupted while it was stored: nothing is sent.
                await shielded(self.end(taken[0][0], 0))
            raise

    async def _store_ended(self, tx: Transaction) -> None:
        for number, (tokens, at) in self._ended.items():
            await provider_request_table.end(tx, number, tokens=tokens, now=at)

    def _forget_ended(self, _: None) -> None:
        self._ended.clear()

    def _tell(self, session_id: SessionID, status: SessionStatus) -> None:
        self._hub.publish(StatusChanged(session_id=session_id, status=status), None)


class _Slot:
    """A request that may be sent once."""

    def __init__(self, slots: ProviderSlots, call: ModelCall, number: int) -> None:
        self._slots = slots
        self._call = call
        self._number: int | None = number
        self._tokens: int | None = None

    async def call(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        stream = self._call(request)
        try:
            async for batch in stream:
                for event in batch:
                    if isinstance(event, Finish):
                        self._count(event.usage)
                yield batch
        finally:
            await close_stream(stream)
            await shielded(self.release())

    async def release(self) -> None:
        number, self._number = self._number, None
        if number is not None:
            await self._slots.end(number, self._tokens)

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            cached = usage.cache_read + usage.cache_write
            self._tokens = usage.input + usage.output + usage.reasoning + cached
