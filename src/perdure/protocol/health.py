"""Health of the server: two probes that need no credentials, and a report that does."""

from typing import Final, Literal

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Record
from perdure.schema.errors import ServiceUnavailableError
from perdure.schema.health import HealthDetail


class Health(Record, frozen=True):
    healthy: bool


class Readiness(Record, frozen=True):
    ready: Literal[True]


GET: Final = Endpoint(
    operation_id="v2.health.get",
    method="GET",
    path="/api/health",
    group="health",
    success=Success("bare", Health),
    is_open=True,
)

READY: Final = Endpoint(
    operation_id="v2.health.ready",
    method="GET",
    path="/api/health/ready",
    group="health",
    success=Success("bare", Readiness),
    errors=(*REFUSALS, ServiceUnavailableError),
    is_open=True,
)

DETAIL: Final = Endpoint(
    operation_id="v2.health.detail",
    method="GET",
    path="/api/health/detail",
    group="health",
    success=Success("bare", HealthDetail),
)

ENDPOINTS: Final = (GET, READY, DETAIL)
