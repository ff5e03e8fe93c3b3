"""What a Session has used, and its budget."""

from typing import Final

from msgspec import UNSET

from perdure.protocol.session import usage
from perdure.protocol.session.usage import SetBudget
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.usage import SessionBudget, SessionUsage
from perdure.server.call import Call, Handlers


async def of_session(call: Call[None, None]) -> SessionUsage:
    return await call.services.usage.load_usage(call.session_id)


async def set_budget(call: Call[None, SetBudget]) -> SessionInfo:
    asked = call.body
    budget = SessionBudget(
        cost=UNSET if asked.cost is None else asked.cost,
        tokens=UNSET if asked.tokens is None else asked.tokens,
        turns=UNSET if asked.turns is None else asked.turns,
    )
    return await call.services.usage.set_budget(call.session_id, budget)


HANDLERS: Final[Handlers] = {
    usage.USAGE.operation_id: of_session,
    usage.BUDGET.operation_id: set_budget,
}
