"""The references a Location has."""

from typing import Final

from perdure.protocol.settings import reference
from perdure.schema.settings.reference import ReferenceInfo
from perdure.server.call import Call, Handlers


async def list_references(call: Call[None, None]) -> tuple[ReferenceInfo, ...]:
    return await call.services.locations.references(call.location())


HANDLERS: Final[Handlers] = {reference.LIST.operation_id: list_references}
