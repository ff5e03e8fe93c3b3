"""The permission rules of one Session, which a person sets.

This is an extension of the published contract, in its style. A Session shows its rules in its field
`permissions`.
"""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.session.session import SessionInfo


class SetRules(Payload, frozen=True):
    """Replaces the previous rules of the Session and of those below it; none removes them."""

    permissions: SessionRules


RULES: Final = Endpoint(
    operation_id="v2.session.rules",
    method="PUT",
    path="/api/session/{sessionID}/rules",
    group="sessions",
    scope="session",
    body=SetRules,
    success=Success("data", SessionInfo),
    errors=(*REFUSALS, SessionNotFoundError, DamagedRowError),
)

ENDPOINTS: Final = (RULES,)
