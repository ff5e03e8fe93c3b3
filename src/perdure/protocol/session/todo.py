"""The todo list of a Session, which its model writes with a tool."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.session.todo import Todos

LIST: Final = Endpoint(
    operation_id="v2.session.todo",
    method="GET",
    path="/api/session/{sessionID}/todo",
    group="sessions",
    scope="session",
    success=Success("data", Todos),
    errors=(*REFUSALS, SessionNotFoundError, DamagedRowError),
)

ENDPOINTS: Final = (LIST,)
