"""The references of a Location."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.settings.reference import ReferenceInfo

LIST: Final = Endpoint(
    operation_id="v2.reference.list",
    method="GET",
    path="/api/reference",
    group="reference",
    scope="location",
    success=Success("location_data", tuple[ReferenceInfo, ...]),
)

ENDPOINTS: Final = (LIST,)
