"""The skills a Location offers."""

from typing import Final

from perdure.protocol.settings import skill
from perdure.schema.settings.skill import SkillInfo
from perdure.server.call import Call, Handlers


async def list_skills(call: Call[None, None]) -> tuple[SkillInfo, ...]:
    return await call.services.locations.skills(call.location())


HANDLERS: Final[Handlers] = {skill.LIST.operation_id: list_skills}
