"""Health of the server."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.codec import Record
from perdure.schema.health import HealthDetail


class Health(Record, frozen=True):
    healthy: bool


GET: Final = Endpoint(
    operation_id="v2.health.get",
    method="GET",
    path="/api/health",
    group="health",
    success=Success("bare", Health),
)

DETAIL: Final = Endpoint(
    operation_id="v2.health.detail",
    method="GET",
    path="/api/health/detail",
    group="health",
    success=Success("bare", HealthDetail),
)

ENDPOINTS: Final = (GET, DETAIL)
