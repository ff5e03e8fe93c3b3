"""The ASGI application: the endpoint table and the handler table, joined and guarded.

Before anything is looked up a request must name us, come from where it may, and say who it is.
Unknown paths and methods are answered in JSON like everything else. A table that does not match
the other is refused when the app is made, not when somebody calls.
"""

import asyncio
from typing import Final

from perdure.protocol.api import API
from perdure.schema.errors import InvalidRequestError, MethodNotAllowedError, NotFoundError
from perdure.server import auth, bind, response
from perdure.server.asgi import Header, Receive, Scope, Send
from perdure.server.bind import Binding
from perdure.server.call import Handlers
from perdure.server.handlers import (
    agent,
    catalog,
    event,
    health,
    location,
    message,
    permission,
    question,
    reference,
    revert,
    session,
    skill,
)
from perdure.server.request import Request
from perdure.server.response import Reply, Response
from perdure.server.routing import Match, Routes
from perdure.server.services import Services
from perdure.server.settings import ServerSettings
from perdure.server.streams import Closing

HANDLERS: Final[Handlers] = {
    **health.HANDLERS,
    **location.HANDLERS,
    **session.HANDLERS,
    **revert.HANDLERS,
    **message.HANDLERS,
    **permission.HANDLERS,
    **question.HANDLERS,
    **event.HANDLERS,
    **agent.HANDLERS,
    **catalog.HANDLERS,
    **skill.HANDLERS,
    **reference.HANDLERS,
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

    def begin_shutdown(self) -> None:
        self.closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        upgrade = scope["type"] == "websocket"
        reply = await bind.contained(self._reply(request, upgrade=upgrade))
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

    async def _reply(self, request: Request, *, upgrade: bool) -> Reply:
        auth.check_unambiguous(request.raw_headers)
        auth.check_host(request.headers, self._policy)
        auth.check_origin(request.headers, self._policy)
        if auth.is_preflight(request.method, request.headers):
            return Response(204, b"", auth.preflight_headers(request.headers))
        method = "GET" if request.method == "HEAD" else request.method
        match = self._routes.match(request.path)
        self._check_credentials(request, match, method)
        if upgrade:
            raise InvalidRequestError("Nothing here can be upgraded to a WebSocket")
        if match is None:
            raise NotFoundError(f"No such path: {request.path[:200].decode('latin-1')}")
        binding = match.by_method.get(method)
        if binding is None:
            raise MethodNotAllowedError(request.method, _allowed(match))
        return await bind.answer(binding, request, match.params, self)

    def _check_credentials(
        self, request: Request, match: Match[Binding] | None, method: str
    ) -> None:
        if self._policy.credential is None:
            return
        binding = None if match is None else match.by_method.get(method)
        streams = binding is not None and binding.endpoint.streams
        auth.check_credentials(
            request.headers, request.fields, self._policy, token_in_query=streams
        )


def _allowed(match: Match[Binding]) -> tuple[str, ...]:
    methods = set(match.by_method)
    return tuple(sorted(methods | {"HEAD"} if "GET" in methods else methods))


async def _send_whole(
    reply: Response, common: tuple[Header, ...], send: Send, *, prefix: str, head: bool
) -> None:
    headers = [*reply.headers, *common]
    if reply.status != 204:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": f"{prefix}.start", "status": reply.status, "headers": headers})
    body = b"" if head else reply.body
    await send({"type": f"{prefix}.body", "body": body, "more_body": False})
