"""The ASGI application: the endpoint table and the handler table, joined and guarded.

Before anything is looked up a request must name us, come from where it may, and say who it is.
Unknown paths and methods are answered in JSON like everything else. A table that does not match
the other is refused when the app is made, not when somebody calls.
"""

import asyncio
from contextlib import ExitStack
from typing import Final

from perdure.protocol.api import API
from perdure.schema.errors import InvalidRequestError, MethodNotAllowedError, NotFoundError
from perdure.server import auth, dispatch, openapi_pages, response
from perdure.server.call import Handlers
from perdure.server.client_limits import ClientLimits
from perdure.server.dispatch import Binding
from perdure.server.handlers import (
    agent,
    catalog,
    children,
    command,
    credential,
    event,
    fs,
    health,
    inbox,
    integration,
    job,
    location,
    message,
    permission,
    pty,
    question,
    recovery,
    reference,
    revert,
    session,
    session_change,
    skill,
    todo,
    usage,
)
from perdure.server.http import websocket
from perdure.server.http.asgi import Header, Receive, Scope, Send
from perdure.server.http.websocket import Upgrade
from perdure.server.request import Request
from perdure.server.response import Reply, Response, Stream
from perdure.server.routing import Match, Routes
from perdure.server.services import Services
from perdure.server.settings import ServerSettings
from perdure.server.streams import Closing

HANDLERS: Final[Handlers] = {
    **health.HANDLERS,
    **location.HANDLERS,
    **session.HANDLERS,
    **session_change.HANDLERS,
    **revert.HANDLERS,
    **recovery.HANDLERS,
    **inbox.HANDLERS,
    **message.HANDLERS,
    **todo.HANDLERS,
    **job.HANDLERS,
    **children.HANDLERS,
    **usage.HANDLERS,
    **permission.HANDLERS,
    **question.HANDLERS,
    **event.HANDLERS,
    **agent.HANDLERS,
    **catalog.HANDLERS,
    **integration.HANDLERS,
    **credential.HANDLERS,
    **skill.HANDLERS,
    **reference.HANDLERS,
    **command.HANDLERS,
    **fs.HANDLERS,
    **pty.HANDLERS,
}


def make_app(services: Services, settings: ServerSettings, handlers: Handlers = HANDLERS) -> "App":
    """Raises ValueError when an endpoint has no handler or a handler no endpoint."""
    operations = {endpoint.operation_id for endpoint in API}
    if unmatched := operations ^ handlers.keys():
        raise ValueError(f"endpoints and handlers do not match: {', '.join(sorted(unmatched))}")
    routes = Routes[Binding]()
    for endpoint in API:
        binding = Binding(endpoint=endpoint, handler=handlers[endpoint.operation_id])
        routes.add(endpoint.method, endpoint.path, binding)
    return App(services, settings, routes)


class App:
    """An ASGI 3 application. `begin_shutdown` ends its streams; other requests finish."""

    def __init__(
        self, services: Services, settings: ServerSettings, routes: Routes[Binding]
    ) -> None:
        self.services = services
        self.settings = settings
        self.closing: Closing = asyncio.Event()
        self._routes = routes
        self._policy = auth.policy(settings)
        self._crowd = ClientLimits(
            requests_per_client_max=settings.requests_per_client_max,
            streams_max=settings.streams_max,
        )

    def begin_shutdown(self) -> None:
        self.closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        upgrade = scope["type"] == "websocket"
        with ExitStack() as held:
            reply = await dispatch.contained(self._reply(request, held, upgrade=upgrade))
            if isinstance(reply, Upgrade) and not upgrade:
                reply = response.failure(InvalidRequestError("This is for WebSockets alone"))
            if isinstance(reply, Upgrade):
                await reply.serve(receive, send)
            else:
                await self._send(reply, request, send, upgrade=upgrade)

    async def _send(
        self, reply: Response | Stream, request: Request, send: Send, *, upgrade: bool
    ) -> None:
        common = auth.response_headers(request.headers, self._policy)
        if isinstance(reply, Response):
            prefix = "websocket.http.response" if upgrade else "http.response"
            encoding = request.headers.get(b"accept-encoding", b"")
            reply = await response.compressed(reply, encoding)
            await _send_whole(reply, common, send, prefix=prefix, head=request.method == "HEAD")
            return
        start = {"type": "http.response.start", "status": 200}
        await send({**start, "headers": [*reply.headers, *common]})
        if request.method == "HEAD":
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            await reply.run(send)

    async def _reply(self, request: Request, held: ExitStack, *, upgrade: bool) -> Reply:
        """`held`: what the request keeps until its answer is sent."""
        auth.check_unambiguous(request.raw_headers)
        auth.check_host(request.headers, self._policy)
        auth.check_origin(request.headers, self._policy)
        if auth.is_preflight(request.method, request.headers):
            return Response(204, b"", auth.preflight_headers(request.headers))
        method = "GET" if request.method == "HEAD" else request.method
        match = self._routes.match(request.path)
        self._check_credentials(request, match, method)
        _check_upgrade(request, match, upgrade=upgrade)
        if match is None:
            return _beside_the_contract(request, method)
        binding = match.by_method.get(method)
        if binding is None:
            raise MethodNotAllowedError(request.method, _allowed(match))
        client = request.client
        place = None if client is None else held.enter_context(self._crowd.place(client))
        reply = await dispatch.answer(binding, request, match.params, self)
        if place is not None and isinstance(reply, Stream | Upgrade):
            place.count_as_stream()
        return reply

    def _check_credentials(
        self, request: Request, match: Match[Binding] | None, method: str
    ) -> None:
        if self._policy.credential is None:
            return
        binding = None if match is None else match.by_method.get(method)
        endpoint = None if binding is None else binding.endpoint
        if endpoint is not None and endpoint.upgrades and "ticket" in request.fields:
            return  # the handler takes it instead, and refuses one that is not good
        streams = endpoint is not None and (endpoint.streams or endpoint.upgrades)
        auth.check_credentials(
            request.headers, request.fields, self._policy, token_in_query=streams
        )


def _check_upgrade(request: Request, match: Match[Binding] | None, *, upgrade: bool) -> None:
    binding = None if match is None else match.by_method.get("GET")
    upgrades = binding is not None and binding.endpoint.upgrades
    if upgrade and not upgrades:
        raise InvalidRequestError("Nothing here can be upgraded to a WebSocket")
    if upgrade:
        websocket.check_handshake(request.headers, request.method)


def _allowed(match: Match[Binding]) -> tuple[str, ...]:
    methods = set(match.by_method)
    return tuple(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def _beside_the_contract(request: Request, method: str) -> Response:
    """The contract's own description is the one thing that is no operation."""
    if request.path not in openapi_pages.PATHS:
        raise NotFoundError(f"No such path: {request.path[:200].decode('latin-1')}")
    if method != "GET":
        raise MethodNotAllowedError(request.method, openapi_pages.METHODS)
    return openapi_pages.at(request.path)


async def _send_whole(
    reply: Response, common: tuple[Header, ...], send: Send, *, prefix: str, head: bool
) -> None:
    headers = [*reply.headers, *common]
    if reply.status != 204:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": f"{prefix}.start", "status": reply.status, "headers": headers})
    body = b"" if head else reply.body
    await send({"type": f"{prefix}.body", "body": body, "more_body": False})
