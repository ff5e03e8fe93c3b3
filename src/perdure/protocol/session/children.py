"""The child Sessions in which a Session's subagents work."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.session.session import SessionInfo

LIST: Final = Endpoint(
    operation_id="v2.session.children",
    method="GET",
    path="/api/session/{sessionID}/children",
    group="sessions",
    scope="session",
    success=Success("data", tuple[SessionInfo, ...]),
    errors=(*REFUSALS, SessionNotFoundError, DamagedRowError),
)

ENDPOINTS: Final = (LIST,)
