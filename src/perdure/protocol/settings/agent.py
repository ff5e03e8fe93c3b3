"""The agents of a Location."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.settings.agent import AgentInfo

LIST: Final = Endpoint(
    operation_id="v2.agent.list",
    method="GET",
    path="/api/agent",
    group="agents",
    scope="location",
    success=Success("location_data", tuple[AgentInfo, ...]),
)

ENDPOINTS: Final = (LIST,)
