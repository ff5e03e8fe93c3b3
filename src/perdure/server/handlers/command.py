"""The commands a Location has."""

from typing import Final

from perdure.protocol.settings import command
from perdure.schema.settings.command import CommandInfo
from perdure.server.call import Call, Handlers


async def list_commands(call: Call[None, None]) -> tuple[CommandInfo, ...]:
    return await call.services.locations.commands(call.location())


HANDLERS: Final[Handlers] = {command.LIST.operation_id: list_commands}
