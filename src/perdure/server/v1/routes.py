"""The V1 routes with their handlers, made on the first V1 request.

To add a V1 operation: declare its Endpoint in a module of `protocol.v1`, list the module in
`protocol.v1.api`, write the handler here in the module of the concept, and join its `HANDLERS`.
"""

from typing import TYPE_CHECKING, Final

from perdure.protocol.v1 import event
from perdure.protocol.v1.api import V1_API
from perdure.server import binding
from perdure.server.binding import Binding
from perdure.server.call import Handlers
from perdure.server.routing import Routes
from perdure.server.v1 import (
    approval,
    config,
    credential,
    file,
    instance,
    location,
    mcp,
    message,
    pty,
    refused,
    session,
    tui,
    work,
)
from perdure.server.v1.stream.events import V1Events

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

HANDLERS: Final[Handlers] = {
    **location.HANDLERS,
    **session.HANDLERS,
    **approval.HANDLERS,
    **config.HANDLERS,
    **file.HANDLERS,
    **pty.HANDLERS,
    **refused.HANDLERS,
}
"""All handlers but those that share the V1Events or the logins of one app."""


def make_handlers(runtime: "Runtime") -> Handlers:
    events = V1Events(runtime)
    return {
        **HANDLERS,
        **instance.make_handlers(events),
        **message.make_handlers(events.origins),
        **work.make_handlers(events),
        **tui.make_handlers(events),
        **credential.make_handlers(),
        **mcp.make_handlers(),
        event.SUBSCRIBE.operation_id: events.subscribe,
        event.SUBSCRIBE_GLOBAL.operation_id: events.subscribe_global,
    }


def make_routes(runtime: "Runtime", handlers: Handlers | None = None) -> Routes[Binding]:
    routes = Routes[Binding]()
    for each in binding.bind_all(V1_API, handlers or make_handlers(runtime)):
        routes.add(each.endpoint.method, each.endpoint.path, each)
    return routes
