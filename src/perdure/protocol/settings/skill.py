"""The skills of a Location, with their texts."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.settings.skill import SkillInfo

LIST: Final = Endpoint(
    operation_id="v2.skill.list",
    method="GET",
    path="/api/skill",
    group="skills",
    scope="location",
    success=Success("location_data", tuple[SkillInfo, ...]),
)

ENDPOINTS: Final = (LIST,)
