"""Request marks: how far the request of a run has come, durable before it can matter.

The boundary marks a request as prepared. Here it is marked as dispatched, in a commit of its own
before the first byte goes out, and cleared with the facts that settle its step. What a mark means
after a crash is core.session.recovery; what is done about it is runtime.drain.crash_recovery.

Invariant: nothing is sent for a Session without a mark on disk that says so.
"""

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import interrupt_table, lease_table
from perdure.store.tables import attempt_table


class RequestMarks:
    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._unsettled: set[SessionID] = set()
        """Sessions whose run here may have left a mark."""

    def take_charge(self, session_id: SessionID) -> None:
        """From now on the run here clears the mark when it ends."""
        self._unsettled.add(session_id)

    def may_exist(self, session_id: SessionID) -> bool:
        """Whether the run here may have left a mark."""
        return session_id in self._unsettled

    async def mark_dispatched(self, session_id: SessionID, step: int) -> None:
        """Durable when this returns: the request may go out now."""
        self.take_charge(session_id)
        await self._store.leases.write_running(
            session_id, lambda tx: attempt_table.put(tx, session_id, "dispatched", step=step)
        )

    async def mark_refused(self, session_id: SessionID, step: int) -> None:
        """The provider refused the request: the next one is sent for the first time."""
        await self._store.leases.write_running(
            session_id, lambda tx: attempt_table.put(tx, session_id, "prepared", step=step)
        )

    async def settle(
        self, tx: Transaction, session_id: SessionID, *, continues: bool, ended: bool
    ) -> None:
        """With the facts that settle a step; `continues`: the model waits for its tools.

        `ended`: the step ended by itself, so that the run has made progress.
        """
        if continues:
            await attempt_table.settle(tx, session_id, ended=ended)
        elif not await attempt_table.release(tx, session_id):
            self._unsettled.discard(session_id)

    async def clear(self, session_id: SessionID) -> None:
        """The run is over. A mark that another process owns by now stays."""
        if session_id not in self._unsettled:
            return
        self._unsettled.discard(session_id)

        async def job(tx: Transaction) -> None:
            if self._store.leases.is_mine(await lease_table.get(tx, session_id)):
                await attempt_table.release(tx, session_id)

        await self._store.database.write(job)

    async def clear_stopped(self, session_id: SessionID) -> None:
        """An interrupt has ended the run: only what was asked for after it is still owed."""
        self._unsettled.discard(session_id)

        async def job(tx: Transaction) -> None:
            if self._store.leases.is_mine(await lease_table.get(tx, session_id)):
                await attempt_table.release(tx, session_id)
                await interrupt_table.clear(tx, session_id)

        await self._store.database.write(job)
