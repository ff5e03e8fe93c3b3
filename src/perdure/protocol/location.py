"""The Location of a request with its project, and its ungranted trust requests."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.location import LocationInfo
from perdure.schema.settings.trust import TrustInfo

GET: Final = Endpoint(
    operation_id="v2.location.get",
    method="GET",
    path="/api/location",
    group="location",
    scope="location",
    success=Success("bare", LocationInfo),
)

TRUST: Final = Endpoint(
    operation_id="v2.location.trust",
    method="GET",
    path="/api/location/trust",
    group="location",
    scope="location",
    success=Success("location_data", TrustInfo),
)

ENDPOINTS: Final = (GET, TRUST)
