"""The Location a request names, and what of its configuration nobody trusts."""

from typing import Final

from perdure.protocol import location
from perdure.schema.location import LocationInfo
from perdure.schema.settings.trust import TrustInfo
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> LocationInfo:
    return await call.services.locations.info(call.location())


async def trust(call: Call[None, None]) -> TrustInfo:
    return await call.services.locations.trust(call.location())


HANDLERS: Final[Handlers] = {
    location.GET.operation_id: get,
    location.TRUST.operation_id: trust,
}
