"""Runs of other processes: told to end, waited for, and not disturbed.

Another process runs a Session while it has the lease and the Session has a mark of a run: see
store.tables.attempt_table. What is asked of it is written down; it looks often while others are
alive.
"""

from perdure.core import limits
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.schema.errors import SessionBusyError
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import interrupt_table, wake_table
from perdure.store.tables import attempt_table, retry_table


class SessionActivity:
    """The runs of all processes on this store, as this one can see and end them."""

    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def interrupt(self, session_id: SessionID) -> None:
        """End what runs, here or elsewhere, and wait until it is settled.

        A process that does not obey in time is not waited for; what was asked of it stays asked.
        """
        await self._coordinator.interrupt(session_id)
        if not await self._holds_elsewhere(session_id):
            return
        await self._store.database.write(lambda tx: interrupt_table.request(tx, session_id))
        looks = limits.INTERRUPT_ELSEWHERE_SECONDS_MAX / limits.ELSEWHERE_LOOK_SECONDS
        for _ in range(round(looks)):
            if await self._obeyed(session_id):
                return
            await self._clock.sleep(limits.ELSEWHERE_LOOK_SECONDS)

    async def idle(self, session_id: SessionID) -> None:
        """Wait until nothing runs; failures do not matter."""
        await self._coordinator.idle(session_id)
        while await self._store.database.read(lambda tx: self.run_elsewhere(tx, session_id)):
            await self._clock.sleep(limits.ELSEWHERE_LOOK_SECONDS)

    async def check_idle(self, tx: Transaction, session_id: SessionID) -> None:
        """Raises SessionBusyError while the Session runs, as seen by `tx`."""
        if session_id in self._coordinator.active or await self.run_elsewhere(tx, session_id):
            raise SessionBusyError(session_id)

    def runs_here(self, session_id: SessionID) -> bool:
        return session_id in self._coordinator.active

    async def run_elsewhere(self, tx: Transaction, session_id: SessionID) -> bool:
        """Whether another living process runs this Session, or was asked to a moment ago."""
        if not await self._store.leases.runs_elsewhere(tx, session_id):
            return False
        return (
            await attempt_table.is_running(tx, session_id)
            or await retry_table.get(tx, session_id) is not None
            or await wake_table.is_requested(tx, session_id)
        )

    async def _holds_elsewhere(self, session_id: SessionID) -> bool:
        return await self._store.database.read(
            lambda tx: self._store.leases.runs_elsewhere(tx, session_id)
        )

    async def _obeyed(self, session_id: SessionID) -> bool:
        async def job(tx: Transaction) -> bool:
            if not await self._store.leases.runs_elsewhere(tx, session_id):
                return True
            if await interrupt_table.is_requested(tx, session_id):
                return False
            return not await attempt_table.is_running(tx, session_id)

        return await self._store.database.read(job)
