"""What a Session has used, with all below it, and the budget of its own."""

from msgspec import UNSET

from perdure.core.session import usage
from perdure.ports import Clock, Transaction
from perdure.schema.ids import SessionID
from perdure.schema.session.event import BudgetChanged
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.usage import SessionBudget, SessionUsage, UsageTotal
from perdure.store.log import usage as usage_log
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table


class SessionUsages:
    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, session_id: SessionID) -> SessionUsage:
        return await self._store.database.read(lambda tx: _usage(tx, session_id))

    async def set_budget(self, session_id: SessionID, budget: SessionBudget) -> SessionInfo:
        """The Session with this budget in place of any other; an empty one bounds nothing."""
        session = await self._session(session_id)
        before = SessionBudget() if session.budget is UNSET else session.budget
        if before != budget:
            now = self._clock.now_millis()
            event = BudgetChanged(timestamp=now, session_id=session_id, budget=budget)
            await self._store.append(session_id, [event], location=session.location)
        return await self._session(session_id)

    async def _session(self, session_id: SessionID) -> SessionInfo:
        return await self._store.database.read(lambda tx: session_table.require(tx, session_id))


async def _usage(tx: Transaction, session_id: SessionID) -> SessionUsage:
    session = await session_table.require(tx, session_id)
    own = usage.session_total(session, await usage_log.load_usage_events(tx, session_id))
    below = [await _total(tx, each) for each in await session_table.descendants(tx, session_id)]
    return SessionUsage(session=own, tree=usage.sum_totals((own, *below)), budget=session.budget)


async def _total(tx: Transaction, session_id: SessionID) -> UsageTotal:
    session = await session_table.require(tx, session_id)
    return usage.session_total(session, await usage_log.load_usage_events(tx, session_id))
