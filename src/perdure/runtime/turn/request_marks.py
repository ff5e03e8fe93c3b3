"""Provider attempts: how far the request of a run has come, durable before it can matter.

The boundary marks a request as prepared. Here it is marked as dispatched, in a commit of its own
before the first byte goes out, and taken off with the facts that settle its step. What such a mark
means after a crash is core.session.recovery; what is done about it is runtime.drain.crash_recovery.

Invariant: nothing is sent for a Session without a mark on disk that says so.
"""

from perdure.core.session.recovery import Attempt
from perdure.core.session.retry import Retry
from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import lease_table
from perdure.store.tables import attempt_table, retry_table


class RequestMarks:
    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._owed: set[SessionID] = set()
        """Sessions whose run here may have left a mark."""

    async def left(self, session_id: SessionID) -> tuple[Attempt | None, Retry | None]:
        """What an earlier run owes, and what it waited for."""

        async def job(tx: Transaction) -> tuple[Attempt | None, Retry | None]:
            attempt = await attempt_table.get(tx, session_id)
            return attempt, await retry_table.get(tx, session_id)

        return await self._store.database.read(job)

    def owe(self, session_id: SessionID) -> None:
        """The run that begins, or crossed its boundary, answers for the mark from now on."""
        self._owed.add(session_id)

    def of_turn(self, session_id: SessionID, step: int) -> "RequestMark":
        return RequestMark(self, session_id, step)

    async def dispatch(self, session_id: SessionID, step: int) -> None:
        self.owe(session_id)
        await self._store.leases.write_running(
            session_id, lambda tx: attempt_table.put(tx, session_id, "dispatched", step=step)
        )

    async def refused(self, session_id: SessionID, step: int) -> None:
        """The provider did not take it: whatever is sent next is sent for the first time."""
        await self._store.leases.write_running(
            session_id, lambda tx: attempt_table.put(tx, session_id, "prepared", step=step)
        )

    async def settle(self, tx: Transaction, session_id: SessionID, *, continues: bool) -> None:
        await attempt_table.settle(tx, session_id, continues=continues)
        if not continues:
            self._owed.discard(session_id)

    async def end(self, session_id: SessionID) -> None:
        """The run is over: it owes nothing, unless another process owes it by now."""
        if session_id not in self._owed:
            return
        self._owed.discard(session_id)

        async def job(tx: Transaction) -> None:
            if self._store.leases.is_mine(await lease_table.get(tx, session_id)):
                await attempt_table.clear(tx, session_id)

        await self._store.database.write(job)


class RequestMark:
    """The marks of one Provider Turn."""

    def __init__(self, attempts: RequestMarks, session_id: SessionID, step: int) -> None:
        self._attempts = attempts
        self._session_id = session_id
        self._step = step

    async def dispatch(self) -> None:
        """Durable when this returns: the request may go out now."""
        await self._attempts.dispatch(self._session_id, self._step)

    async def settle(self, tx: Transaction, *, continues: bool) -> None:
        """With the facts that settle the step; `continues`: the model waits for its tools."""
        await self._attempts.settle(tx, self._session_id, continues=continues)
