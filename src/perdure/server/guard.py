"""The checks that a request passes before its handler is called, and the slot it then holds.

Host, Origin and credentials are checked before the server says whether a path exists. `auth` has
the rules, `client_limits` the counts.
"""

from contextlib import ExitStack

from perdure.protocol.endpoint import Endpoint
from perdure.schema.errors import InvalidRequestError
from perdure.server import auth
from perdure.server.client_limits import ClientLimits, Slot
from perdure.server.http import websocket
from perdure.server.http.asgi import Header
from perdure.server.request import Request
from perdure.server.settings import ServerSettings


class Guard:
    def __init__(self, settings: ServerSettings) -> None:
        self._policy = auth.make_policy(settings)
        self._limits = ClientLimits(
            requests_per_client_max=settings.requests_per_client_max,
            streams_max=settings.streams_max,
        )

    def check_sender(self, request: Request) -> None:
        """Refuse a Host that is not this server's and an Origin that may not call it."""
        auth.check_unambiguous(request.raw_headers)
        auth.check_host(request.headers, self._policy)
        auth.check_origin(request.headers, self._policy)

    def check_credentials(self, request: Request, endpoint: Endpoint | None) -> None:
        """Refuse a request without the right credentials; `endpoint` is None where none is."""
        if not self._policy.asks_credentials:
            return
        if endpoint is not None and endpoint.is_open and b"authorization" not in request.headers:
            return  # credentials that are sent are checked: clients try a password there
        if endpoint is not None and endpoint.upgrades and "ticket" in request.fields:
            return  # the handler checks the ticket, which replaces the credentials
        streams = endpoint is not None and (endpoint.streams or endpoint.upgrades)
        auth.check_credentials(
            request.headers, request.fields, self._policy, token_in_query=streams
        )

    def check_upgrade(self, request: Request, endpoint: Endpoint | None) -> None:
        """Refuse a WebSocket handshake that is malformed, or where there is no WebSocket."""
        if not request.is_upgrade:
            return
        if endpoint is None or not endpoint.upgrades:
            raise InvalidRequestError("Nothing here can be upgraded to a WebSocket")
        websocket.check_handshake(request.headers, request.method)

    def hold_slot(self, request: Request, held: ExitStack) -> Slot | None:
        """Count the request against its client until `held` ends; None for one in this process."""
        if request.client is None:
            return None
        return held.enter_context(self._limits.take_slot(request.client))

    def response_headers(self, request: Request) -> tuple[Header, ...]:
        return auth.response_headers(request.headers, self._policy)
