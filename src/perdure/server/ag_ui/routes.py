"""The route of AG-UI with its handler."""

from typing import Final

from perdure.protocol import ag_ui
from perdure.server import binding
from perdure.server.ag_ui.run import run_agent
from perdure.server.binding import Binding
from perdure.server.call import Handlers
from perdure.server.routing import Routes

HANDLERS: Final[Handlers] = {ag_ui.RUN.operation_id: run_agent}


def make_routes(handlers: Handlers | None = None) -> Routes[Binding]:
    routes = Routes[Binding]()
    for each in binding.bind_all(ag_ui.AG_UI_API, handlers or HANDLERS):
        routes.add(each.endpoint.method, each.endpoint.path, each)
    return routes
