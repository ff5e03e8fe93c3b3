"""Telling a Session something on the runtime's own behalf: a job ended, a child is done.

A notice is durable before anybody is woken, and becomes a synthetic message at the next Safe
Provider-Turn Boundary (runtime.turn.boundary). Telling again with the same message id tells
nothing. A Session that was put away is not woken: it hears of it when somebody goes on with it.

Invariant: a process that dies after a notice was put leaves one that any other will tell.
"""

from collections.abc import Callable

from perdure.ports import Transaction
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.processes import wake_table
from perdure.store.tables import notice_table, session_table
from perdure.store.tables.notice_table import Notice


class Notices:
    def __init__(self, store: EventStore, *, wake: Callable[[SessionID], None]) -> None:
        self._store = store
        self._wake = wake

    async def put(self, tx: Transaction, notice: Notice) -> bool:
        """As a part of the transaction that it reports; whether to `wake` after its commit."""
        if not await notice_table.put(tx, notice):
            return False
        if await session_table.is_archived(tx, notice.session_id):
            return False
        # With the notice: this process may die before its own wake finds who runs the Session.
        if await self._store.leases.runs_elsewhere(tx, notice.session_id):
            await wake_table.request(tx, notice.session_id)
        return True

    def wake(self, session_id: SessionID) -> None:
        self._wake(session_id)
