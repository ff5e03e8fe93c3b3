"""The Sessions of all Locations that run or wait for a person."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.session.attention import SessionAttention

LIST: Final = Endpoint(
    operation_id="v2.session.attention",
    method="GET",
    path="/api/session/attention",
    group="sessions",
    success=Success("data", tuple[SessionAttention, ...]),
)

ENDPOINTS: Final = (LIST,)
