"""The live stream, of the whole server or of the Location that is asked for."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from perdure.protocol import event
from perdure.server.call import Call, Handlers
from perdure.server.services import LiveSubscription


async def subscribe(
    call: Call[None, None],
) -> Callable[[], AbstractContextManager[LiveSubscription]]:
    location = call.asked_location()
    return lambda: call.services.hub.subscribe(location)


HANDLERS: Final[Handlers] = {event.SUBSCRIBE.operation_id: subscribe}
