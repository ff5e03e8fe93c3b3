"""The live event stream of the server. Nothing is replayed."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.schema.live_event import LiveEvent

SUBSCRIBE: Final = Endpoint(
    operation_id="v2.event.subscribe",
    method="GET",
    path="/api/event",
    group="events",
    success=Success("live_stream", LiveEvent),
)

ENDPOINTS: Final = (SUBSCRIBE,)
