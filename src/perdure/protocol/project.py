"""Projects: those that Sessions worked in, and that of a Location."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.location import ProjectInfo

_GROUP: Final = "project"

LIST: Final = Endpoint(
    operation_id="v2.project.list",
    method="GET",
    path="/api/project",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[ProjectInfo, ...]),
)
CURRENT: Final = Endpoint(
    operation_id="v2.project.current",
    method="GET",
    path="/api/project/current",
    group=_GROUP,
    scope="location",
    success=Success("location_data", ProjectInfo),
)

ENDPOINTS: Final = (LIST, CURRENT)
