"""The commands of a Location."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.settings.command import CommandInfo

LIST: Final = Endpoint(
    operation_id="v2.command.list",
    method="GET",
    path="/api/command",
    group="command",
    scope="location",
    success=Success("location_data", tuple[CommandInfo, ...]),
)

ENDPOINTS: Final = (LIST,)
