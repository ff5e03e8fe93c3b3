"""The files that a Session changed, as diffs."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import DamagedRowError, MessageNotFoundError, SessionNotFoundError
from perdure.schema.ids import SuppliedMessageID
from perdure.schema.session.session import FileDiff


class DiffSession(Payload, frozen=True):
    """The changes of the messages from `first` to `last`, both included; without, of all."""

    first: SuppliedMessageID | None = None
    last: SuppliedMessageID | None = None


GET: Final = Endpoint(
    operation_id="v2.session.diff",
    method="GET",
    path="/api/session/{sessionID}/diff",
    group="sessions",
    scope="session",
    query=DiffSession,
    success=Success("data", tuple[FileDiff, ...]),
    errors=(*REFUSALS, SessionNotFoundError, MessageNotFoundError, DamagedRowError),
)

ENDPOINTS: Final = (GET,)
