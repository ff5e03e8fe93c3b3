"""The whole V1 contract: every V1 endpoint that is served, in reading order."""

from typing import Final

from perdure.protocol.endpoint import Endpoint
from perdure.protocol.v1 import approval, catalog, event, instance, location, message, session

V1_API: Final[tuple[Endpoint, ...]] = (
    *instance.ENDPOINTS,
    *catalog.ENDPOINTS,
    *location.ENDPOINTS,
    *session.ENDPOINTS,
    *message.ENDPOINTS,
    *approval.ENDPOINTS,
    *event.ENDPOINTS,
)
