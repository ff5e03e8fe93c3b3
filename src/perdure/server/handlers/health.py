"""The health of the server: that it answers, that it can store prompts, and a full report."""

from typing import Final

from perdure.protocol import health
from perdure.protocol.health import Health, Readiness
from perdure.schema.errors import ServiceUnavailableError
from perdure.schema.health import HealthDetail
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> Health:
    return Health(healthy=await call.runtime.health.is_healthy())


async def ready(call: Call[None, None]) -> Readiness:
    """The reason is not told to callers without credentials; `detail` has it."""
    if not await call.runtime.health.is_healthy():
        raise ServiceUnavailableError("Prompts cannot be stored now", service="database")
    return Readiness(ready=True)


async def detail(call: Call[None, None]) -> HealthDetail:
    return await call.runtime.health.detail()


HANDLERS: Final[Handlers] = {
    health.GET.operation_id: get,
    health.READY.operation_id: ready,
    health.DETAIL.operation_id: detail,
}
