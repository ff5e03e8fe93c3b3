"""What a crash left for a person to decide: told, and decided, from any process.

A decision is a change of the mark that the dead run left, and a wake: whoever has the lease acts on
it. Nothing is sent or failed here. A run that nobody has taken over yet can be decided about too,
before the configuration has a say.
"""

from perdure.core.session import recovery
from perdure.core.session.recovery import AskPerson, Attempt, Unclear
from perdure.ports import Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
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

    async def of(self, session_id: SessionID) -> RecoveryInfo:
        async def job(tx: Transaction) -> RecoveryInfo:
            attempt = await self._attempt(tx, session_id)
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
        """Raises NothingToDecideError when nothing waits, or somebody was quicker."""

        async def job(tx: Transaction) -> None:
            attempt = await self._attempt(tx, session_id)
            reason = None if attempt is None else await self._reason(tx, session_id, attempt)
            if reason is None:
                raise NothingToDecideError(session_id)
            await attempt_table.set_waiting(tx, session_id, reason)
            await attempt_table.decide(tx, session_id, retry=decision == "retry")
            if await self._store.leases.runs_elsewhere(tx, session_id):
                await wake_table.request(tx, session_id)

        await self._store.database.write(job)
        self._coordinator.wake(session_id)

    async def _attempt(self, tx: Transaction, session_id: SessionID) -> Attempt | None:
        if await session_table.load_json(tx, session_id) is None:
            raise SessionNotFoundError(session_id)
        return await attempt_table.get(tx, session_id)

    async def _reason(
        self, tx: Transaction, session_id: SessionID, attempt: Attempt
    ) -> WaitReason | None:
        """Why a person may decide about it; None: it runs, will by itself, or was decided about."""
        if attempt.waits is None and await self._store.leases.holder(tx, session_id) != "dead":
            return None
        match recovery.classify(attempt):
            case AskPerson(reason=reason):
                return reason
            case Unclear():
                return None if await _is_begun(tx, session_id) else "unclear"
            case _:
                return None


async def _is_begun(tx: Transaction, session_id: SessionID) -> bool:
    """Whether something of the answer is durable: then it is a failed step, and settled."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    message = None if newest is None else newest.message()
    return isinstance(message, AssistantMessage) and recovery.is_unfinished(message)
