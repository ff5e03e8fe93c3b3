"""Shows what a crash left for a person to decide, and takes the decision, in any process.

A decision changes the mark that the dead run left and wakes the Session: the process that holds the
lease acts on it. Nothing is sent or failed here. A run that no process has taken over yet can be
decided about too, before the configured policy is applied.
"""

from typing import assert_never

from perdure.core.session import recovery
from perdure.core.session.recovery import (
    AskPerson,
    Attempt,
    GiveUp,
    NothingDue,
    SendRequest,
    Unclear,
)
from perdure.ports import Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.pending_calls import asks_person
from perdure.schema.errors import NothingToDecideError, SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.message import AssistantMessage
from perdure.schema.session.recovery import Decision, RecoveryInfo, WaitReason
from perdure.store.log.event_store import EventStore
from perdure.store.processes import wake_table
from perdure.store.tables import attempt_table, message_table, session_table


class SessionRecovery:
    def __init__(self, store: EventStore, coordinator: RunCoordinator) -> None:
        self._store = store
        self._coordinator = coordinator

    async def load_recovery(self, session_id: SessionID) -> RecoveryInfo:
        async def job(tx: Transaction) -> RecoveryInfo:
            attempt = await self._load_attempt(tx, session_id)
            reason = None if attempt is None else await self._reason(tx, session_id, attempt)
            if attempt is None or reason is None:
                return RecoveryInfo(waiting=False)
            return RecoveryInfo(
                waiting=True,
                reason=reason,
                message=recovery.WAITING[reason],
                deaths=attempt.deaths,
            )

        return await self._store.database.read(job)

    async def decide(self, session_id: SessionID, decision: Decision) -> None:
        """Raises NothingToDecideError if nothing waits, or another client has decided."""

        async def job(tx: Transaction) -> None:
            attempt = await self._load_attempt(tx, session_id)
            reason = None if attempt is None else await self._reason(tx, session_id, attempt)
            if reason is None:
                raise NothingToDecideError(session_id)
            await attempt_table.set_waiting(tx, session_id, reason)
            await attempt_table.decide(tx, session_id, retry=decision == "retry")
            if await self._store.leases.runs_elsewhere(tx, session_id):
                await wake_table.request(tx, session_id)

        await self._store.database.write(job)
        self._coordinator.wake(session_id)

    async def _load_attempt(self, tx: Transaction, session_id: SessionID) -> Attempt | None:
        if await session_table.load_json(tx, session_id) is None:
            raise SessionNotFoundError(session_id)
        return await attempt_table.get(tx, session_id)

    async def _reason(
        self, tx: Transaction, session_id: SessionID, attempt: Attempt
    ) -> WaitReason | None:
        """Return why a person may decide; None if it runs, will run, or was decided about."""
        if attempt.waits is None and await self._store.leases.holder(tx, session_id) != "dead":
            return None
        verdict = recovery.classify(attempt)
        match verdict:
            case AskPerson(reason=reason):
                # A call that asks a person goes first, and the run with it.
                asked = attempt.waits is None and await asks_person(tx, session_id)
                return None if asked else reason
            case Unclear():
                return None if await _is_begun(tx, session_id) else "unclear"
            case SendRequest() | GiveUp() | NothingDue():
                return None
            case _:
                assert_never(verdict)


async def _is_begun(tx: Transaction, session_id: SessionID) -> bool:
    """Whether the answer is known to have made calls: then the run goes on with those."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    step = None if newest is None else newest.message()
    if not isinstance(step, AssistantMessage):
        return False
    return recovery.find_cut_step([step]) is not None and recovery.has_calls(step)
