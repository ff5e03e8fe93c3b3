"""Stored credentials: renamed and forgotten."""

from typing import Final

from perdure.protocol.models import credential
from perdure.protocol.models.credential import UpdateCredential
from perdure.server.call import Call, Handlers


async def update(call: Call[None, UpdateCredential]) -> None:
    await call.services.integrations.relabel(call.params["credentialID"], call.body.label)


async def remove(call: Call[None, None]) -> None:
    await call.services.integrations.remove(call.params["credentialID"])


HANDLERS: Final[Handlers] = {
    credential.UPDATE.operation_id: update,
    credential.REMOVE.operation_id: remove,
}
