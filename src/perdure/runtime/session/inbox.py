"""Lists, revises, cancels and reorders pending prompts.

Only pending prompts can be changed. A change is fenced by the sequence at which it was decided: if
a boundary appended first, it is decided again, and refused if the prompt has been promoted.
Boundaries are fenced against changes in the same way (runtime.turn.boundary).
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
"""Builds the event of a change from the prompts that it is about; None changes nothing."""


class _PromptsAt(Value, kw_only=True):
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
        """Return pending prompts: steers first, then the queue, each in order of promotion."""

        async def job(tx: Transaction) -> tuple[AdmittedPrompt, ...]:
            await session_table.require(tx, session_id)
            return await load_pending(tx, session_id)

        return await self._store.database.read(job)

    async def revise(
        self,
        session_id: SessionID,
        message_id: MessageID,
        *,
        prompt: PromptInput | None,
        delivery: Delivery | None,
    ) -> AdmittedPrompt:
        """Change the prompt, its delivery or both; return it as it is then."""
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
        # A steer is promoted at the next boundary; an idle Session has one only if it owes a run.
        self._coordinator.wake(session_id)
        return replace(before, prompt=said or before.prompt, delivery=delivery or before.delivery)

    async def cancel(self, session_id: SessionID, message_id: MessageID) -> None:
        """Cancel a prompt, so that it is never promoted. Cancelling it again is a no-op."""
        now = self._clock.now_millis()
        event = PromptCancelled(timestamp=now, session_id=session_id, message_id=message_id)
        try:
            await self._change(session_id, [message_id], lambda _: event)
        except PromptSettledError as error:
            if error.state != "cancelled":
                raise

    async def reorder(self, session_id: SessionID, message_ids: Sequence[MessageID]) -> None:
        """Exchange the positions of these prompts, so that they are promoted in this order."""
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
        """Return the prompts as they were before the change."""
        while True:
            look = await self._store.database.read(
                lambda tx: _load_prompts(tx, session_id, message_ids)
            )
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


async def load_pending(tx: Transaction, session_id: SessionID) -> tuple[AdmittedPrompt, ...]:
    limit = limits.INBOX_ITEMS_MAX
    lists = [
        await inbox_table.list_pending(tx, session_id, kind, limit=limit) for kind in _DELIVERIES
    ]
    return tuple(prompt for found in lists for prompt in found)[:limit]


async def _load_prompts(
    tx: Transaction, session_id: SessionID, message_ids: Sequence[MessageID]
) -> _PromptsAt:
    session = await session_table.require(tx, session_id)
    return _PromptsAt(
        at=await latest_seq(tx, session_id),
        location=session.location,
        prompts=tuple([await _load_prompt(tx, session_id, one) for one in message_ids]),
    )


async def _load_prompt(
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
