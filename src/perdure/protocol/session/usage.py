"""Usage of a Session, and the budget that a person sets.

These are extensions of the published contract, in its style.
"""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.usage import SessionUsage

Money = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=2**53)]


class SetBudget(Payload, frozen=True):
    """Replaces the previous budget. Omitted fields are unbounded."""

    cost: Money | None = None
    tokens: Count | None = None
    turns: Count | None = None


_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)

USAGE: Final = Endpoint(
    operation_id="v2.session.usage",
    method="GET",
    path="/api/session/{sessionID}/usage",
    group="sessions",
    scope="session",
    success=Success("data", SessionUsage),
    errors=_ON_SESSION,
)
BUDGET: Final = Endpoint(
    operation_id="v2.session.budget",
    method="PUT",
    path="/api/session/{sessionID}/budget",
    group="sessions",
    scope="session",
    body=SetBudget,
    success=Success("data", SessionInfo),
    errors=_ON_SESSION,
)

ENDPOINTS: Final = (USAGE, BUDGET)
