"""The V1 routes that are not offered: each answers why."""

from typing import Final

from perdure.protocol.v1 import refused
from perdure.schema.errors import InvalidRequestError
from perdure.server.call import Call, Handler, Handlers


def _refuse(reason: str) -> Handler[None, None, bool]:
    async def refuse(call: Call[None, None]) -> bool:
        raise InvalidRequestError(reason)

    return refuse


HANDLERS: Final[Handlers] = {
    operation: _refuse(reason) for operation, reason in refused.WHY.items()
}
