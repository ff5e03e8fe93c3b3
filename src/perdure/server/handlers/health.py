"""The health of the server: that it answers, and a report in detail."""

from typing import Final

from perdure.protocol import health
from perdure.protocol.health import Health
from perdure.schema.health import HealthDetail
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> Health:
    return Health(healthy=await call.runtime.health.is_healthy())


async def detail(call: Call[None, None]) -> HealthDetail:
    return await call.runtime.health.detail()


HANDLERS: Final[Handlers] = {
    health.GET.operation_id: get,
    health.DETAIL.operation_id: detail,
}
