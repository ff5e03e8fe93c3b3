"""Whether the server answers at all."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.codec import Record


class Health(Record, frozen=True):
    healthy: bool


GET: Final = Endpoint(
    operation_id="v2.health.get",
    method="GET",
    path="/api/health",
    group="health",
    success=Success("bare", Health),
)

ENDPOINTS: Final = (GET,)
