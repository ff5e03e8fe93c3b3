"""Recovery operations: whether a Session waits for a decision after a crash, and the decision."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, NothingToDecideError, SessionNotFoundError
from perdure.schema.session.recovery import Decision, RecoveryInfo


class DecideRecovery(Payload, frozen=True):
    """`retry` sends the request again. `abandon` records it as a failed step."""

    decision: Decision


_GROUP: Final = "sessions"
_PATH: Final = "/api/session/{sessionID}/recovery"
_ON_SESSION: Final = (*REFUSALS, SessionNotFoundError, DamagedRowError)

GET: Final = Endpoint(
    operation_id="v2.session.recovery.get",
    method="GET",
    path=_PATH,
    group=_GROUP,
    scope="session",
    success=Success("data", RecoveryInfo),
    errors=_ON_SESSION,
)
DECIDE: Final = Endpoint(
    operation_id="v2.session.recovery.decide",
    method="POST",
    path=_PATH,
    group=_GROUP,
    scope="session",
    body=DecideRecovery,
    success=Success("no_content"),
    errors=(*_ON_SESSION, NothingToDecideError),
)

ENDPOINTS: Final = (GET, DECIDE)
