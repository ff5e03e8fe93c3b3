"""What a Session has spent, with all Sessions that belong together with it, against its budgets."""

from perdure.core import budget
from perdure.core.budget import Budget, Spent
from perdure.ports import Database, Transaction
from perdure.schema.ids import SessionID
from perdure.store import message_table, session_table


async def reached(database: Database, session_id: SessionID, bounds: Budget) -> str | None:
    """Why no further turn may be sent. Costs nothing where nothing is bound."""
    if not bounds.is_bound:
        return None
    spent = await database.read(lambda tx: of_family(tx, session_id))
    return budget.reached(bounds, spent)


async def of_family(tx: Transaction, session_id: SessionID) -> Spent:
    family = await session_table.family(tx, session_id)
    return Spent(
        cost=sum(session.cost for session in family),
        tokens=sum(budget.total(session.tokens) for session in family),
        turns=sum([await message_table.count_answers(tx, session.id) for session in family]),
    )
