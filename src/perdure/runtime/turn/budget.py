"""Checks what Sessions have spent against their budgets, and records the cost of side requests.

The budgets of configuration and agent apply to a Session with its parents and children together;
that of a Session to it and its children, so a child is also stopped by its parent's.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import UNSET

from perdure.core.models import catalog
from perdure.core.session import budget, usage
from perdure.core.session.budget import Budget, Spent
from perdure.llm.event import Usage
from perdure.location.models.catalog import ResolvedModel
from perdure.ports import Database, Transaction
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import SessionID
from perdure.schema.session import event
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.usage import SidePurpose
from perdure.store.log import usage as usage_log
from perdure.store.tables import session_table


async def find_exceeded(database: Database, session: SessionInfo, bounds: Budget) -> str | None:
    """Which budget is used up, in words; None if another turn may be sent."""
    alone = session.parent_id is UNSET and session.budget is UNSET
    if alone and not bounds.is_bound:
        return None
    return await database.read(lambda tx: _find_exceeded(tx, session.id, bounds))


def side_cost(
    services: RunServices,
    session: SessionInfo,
    model: ResolvedModel,
    *,
    purpose: SidePurpose,
    used: Usage,
) -> event.Spent:
    """The event that records the cost of a request beside the conversation."""
    return event.Spent(
        timestamp=services.clock.now_millis(),
        session_id=session.id,
        purpose=purpose,
        model=model.ref,
        cost=catalog.cost_of(model.cost, used),
        tokens=usage.tokens_of(used),
    )


async def _find_exceeded(tx: Transaction, session_id: SessionID, bounds: Budget) -> str | None:
    family = {each.id: each for each in await session_table.load_family(tx, session_id)}
    if bounds.is_bound:
        spent = await _spent(tx, family.values(), bounds)
        if told := budget.check_budget(bounds, spent):
            return told
    for owner in _upwards(family, session_id):
        own = Budget.from_settings(owner.budget)
        if not own.is_bound:
            continue
        below = [each for each in family.values() if owner in _upwards(family, each.id)]
        spent = await _spent(tx, below, own)
        if told := budget.check_budget(own, spent, where=f"of Session {owner.id}"):
            return told
    return None


def _upwards(family: Mapping[SessionID, SessionInfo], begin: SessionID) -> Iterator[SessionInfo]:
    """A Session, its parent, and so on."""
    seen: set[SessionID] = set()
    at = family.get(begin)
    while at is not None and at.id not in seen:
        seen.add(at.id)
        yield at
        at = None if at.parent_id is UNSET else family.get(at.parent_id)


async def _spent(tx: Transaction, sessions: Iterable[SessionInfo], bounds: Budget) -> Spent:
    counted = tuple(sessions)
    turns = 0
    if bounds.turns is not None:
        turns = sum([await usage_log.count_turns(tx, each.id) for each in counted])
    return Spent(
        cost=sum(each.cost for each in counted),
        tokens=sum(budget.total_tokens(each.tokens) for each in counted),
        turns=turns,
    )
