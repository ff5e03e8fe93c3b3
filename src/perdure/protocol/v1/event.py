"""The event streams of V1: of one directory, or of the whole server with the directory named."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.codec import JsonValue, Record


class V1Event(Record):
    id: str
    type: str
    properties: JsonValue


SUBSCRIBE: Final = Endpoint(
    operation_id="v1.event.subscribe",
    method="GET",
    path="/event",
    group="v1",
    success=Success("live_stream", V1Event),
)
SUBSCRIBE_GLOBAL: Final = Endpoint(
    operation_id="v1.global.event",
    method="GET",
    path="/global/event",
    group="v1",
    success=Success("live_stream", V1Event),
)

ENDPOINTS: Final = (SUBSCRIBE, SUBSCRIBE_GLOBAL)
