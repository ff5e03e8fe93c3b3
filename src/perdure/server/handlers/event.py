"""The live stream, of the whole server or of the Location that the request names."""

from typing import Final

from perdure.protocol import event
from perdure.schema.live_event import LiveEvent
from perdure.server.call import Call, Handlers
from perdure.server.results import LiveStream


async def subscribe(call: Call[None, None]) -> LiveStream[LiveEvent]:
    location = call.named_location()
    return LiveStream(lambda: call.runtime.hub.subscribe(location))


HANDLERS: Final[Handlers] = {event.SUBSCRIBE.operation_id: subscribe}
