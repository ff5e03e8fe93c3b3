"""Whether the server answers at all."""

from typing import Final

from perdure.protocol import health
from perdure.protocol.health import Health
from perdure.server.call import Call, Handlers


async def get(_: Call[None, None]) -> Health:
    return Health(healthy=True)


HANDLERS: Final[Handlers] = {health.GET.operation_id: get}
