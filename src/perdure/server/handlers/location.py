"""The Location a request names."""

from typing import Final

from perdure.protocol import location
from perdure.schema.location import LocationInfo
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> LocationInfo:
    return await call.services.locations.info(call.location())


HANDLERS: Final[Handlers] = {location.GET.operation_id: get}
