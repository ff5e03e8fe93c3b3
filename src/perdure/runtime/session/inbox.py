"""The inbox as a person sees it: what waits, and how it can still be changed.

Only what is pending can be revised, cancelled or put in another order. A change is fenced by the
sequence at which it was decided; when a boundary was quicker, it is decided again, and then refused
if the prompt has been promoted. Boundaries are fenced against changes likewise:
runtime.turn.boundary.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import inbox
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError, PromptSettledError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import (
    InboxReordered,
    PromptCancelled,
    PromptRevised,
    SessionEvent,
)
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore, SequenceConflictError, latest_seq
from perdure.store.tables import inbox_table, session_table

_DELIVERIES: Final[tuple[Delivery, ...]] = ("steer", "queue")

Decide = Callable[[tuple[AdmittedPrompt, ...]], SessionEvent | None]
"""The event that a change is, made from the prompts it is about; None when there is none."""


class _Look(Value, kw_only=True):
    """Prompts as they are at one sequence."""

    at: Seq
    location: LocationRef
    prompts: tuple[AdmittedPrompt, ...]


class SessionInbox:
    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def list(self, session_id: SessionID) -> tuple[AdmittedPrompt, ...]:
        """What is pending: steers first, then the queue, each in the order of their promotion."""

        async def job(tx: Transaction) -> tuple[AdmittedPrompt, ...]:
            await session_table.require(tx, session_id)
            return await pending(tx, session_id)

        return await self._store.database.read(job)

    async def revise(
        self,
        session_id: SessionID,
        message_id: MessageID,
        *,
        prompt: PromptInput | None,
        delivery: Delivery | None,
    ) -> AdmittedPrompt:
        """Say something else, or deliver it otherwise; what is not given stays."""
        said = None if prompt is None else inbox.admit(prompt)

        def decide(found: tuple[AdmittedPrompt, ...]) -> PromptRevised | None:
            (now,) = found
            wanted = replace(now, prompt=said or now.prompt, delivery=delivery or now.delivery)
            if wanted == now:
                return None
            return PromptRevised(
                timestamp=self._clock.now_millis(),
                session_id=session_id,
                message_id=message_id,
                prompt=wanted.prompt,
                delivery=wanted.delivery,
            )

        (before,) = await self._change(session_id, [message_id], decide)
        # A steer joins at the next boundary, and there is none while nothing runs.
        self._coordinator.wake(session_id)
        return replace(before, prompt=said or before.prompt, delivery=delivery or before.delivery)

    async def cancel(self, session_id: SessionID, message_id: MessageID) -> None:
        """Never promote it; nothing to do when it was cancelled before."""
        now = self._clock.now_millis()
        event = PromptCancelled(timestamp=now, session_id=session_id, message_id=message_id)
        try:
            await self._change(session_id, [message_id], lambda _: event)
        except PromptSettledError as error:
            if error.state != "cancelled":
                raise

    async def reorder(self, session_id: SessionID, message_ids: Sequence[MessageID]) -> None:
        """Let these exchange their places, so that they are promoted in this order."""
        if len(set(message_ids)) != len(message_ids) or len(message_ids) > limits.INBOX_ITEMS_MAX:
            raise InvalidRequestError(
                f"An order names up to {limits.INBOX_ITEMS_MAX} prompts, each once",
                kind="Payload",
                field="messageIDs",
            )
        event = InboxReordered(
            timestamp=self._clock.now_millis(),
            session_id=session_id,
            message_ids=tuple(message_ids),
        )
        await self._change(session_id, message_ids, lambda _: event if message_ids else None)

    async def _change(
        self, session_id: SessionID, message_ids: Sequence[MessageID], decide: Decide
    ) -> tuple[AdmittedPrompt, ...]:
        """The prompts as they were before."""
        while True:
            look = await self._store.database.read(lambda tx: _look(tx, session_id, message_ids))
            event = decide(look.prompts)
            if event is None:
                return look.prompts
            try:
                await self._store.append(
                    session_id, [event], location=look.location, expected=look.at
                )
            except SequenceConflictError:
                continue
            return look.prompts


async def pending(tx: Transaction, session_id: SessionID) -> tuple[AdmittedPrompt, ...]:
    limit = limits.INBOX_ITEMS_MAX
    lists = [
        await inbox_table.list_pending(tx, session_id, kind, limit=limit) for kind in _DELIVERIES
    ]
    return tuple(prompt for found in lists for prompt in found)[:limit]


async def _look(tx: Transaction, session_id: SessionID, message_ids: Sequence[MessageID]) -> _Look:
    session = await session_table.require(tx, session_id)
    return _Look(
        at=await latest_seq(tx, session_id),
        location=session.location,
        prompts=tuple([await _pending_one(tx, session_id, one) for one in message_ids]),
    )


async def _pending_one(
    tx: Transaction, session_id: SessionID, message_id: MessageID
) -> AdmittedPrompt:
    found = await inbox_table.get(tx, message_id)
    if found is None or found.session_id != session_id:
        raise MessageNotFoundError(session_id, message_id)
    if found.promoted_seq is not UNSET:
        raise PromptSettledError(message_id, "promoted")
    if await inbox_table.is_cancelled(tx, message_id):
        raise PromptSettledError(message_id, "cancelled")
    return found
