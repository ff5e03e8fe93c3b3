"""The Location a request names, with its project resolved."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.location import LocationInfo

GET: Final = Endpoint(
    operation_id="v2.location.get",
    method="GET",
    path="/api/location",
    group="location",
    scope="location",
    success=Success("bare", LocationInfo),
)

ENDPOINTS: Final = (GET,)
