"""The agents a Location offers."""

from typing import Final

from perdure.protocol.settings import agent
from perdure.schema.settings.agent import AgentInfo
from perdure.server.call import Call, Handlers


async def list_agents(call: Call[None, None]) -> tuple[AgentInfo, ...]:
    return await call.services.locations.agents(call.location())


HANDLERS: Final[Handlers] = {agent.LIST.operation_id: list_agents}
