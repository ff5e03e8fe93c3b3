"""Stores notices of the runtime to a Session: a job ended, a child is done.

A notice is durable before the Session is woken, and becomes a synthetic message at the next Safe
Provider-Turn Boundary (runtime.turn.boundary). A second notice with the same message id is ignored.
An archived Session is not woken; it gets the notice when it is next run.

Invariant: a stored notice is delivered, also if the process that stored it dies.
"""

from collections.abc import Callable

from perdure.ports import Transaction
from perdure.runtime.coordination.run_request import request_run
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import notice_table, session_table
from perdure.store.tables.notice_table import Notice


class Notices:
    def __init__(self, store: EventStore, *, wake: Callable[[SessionID], None]) -> None:
        self._store = store
        self._wake = wake

    async def put(self, tx: Transaction, notice: Notice) -> bool:
        """Store a notice with what it reports; return whether to `wake` after the commit."""
        if not await notice_table.put(tx, notice):
            return False
        if await session_table.is_archived(tx, notice.session_id):
            return False
        await request_run(tx, self._store.leases, notice.session_id)
        return True

    def wake(self, session_id: SessionID) -> None:
        self._wake(session_id)
