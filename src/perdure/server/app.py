"""The ASGI application: guard, then dispatch, then send.

`App._answer` reads from top to bottom: the guard checks who calls, the route is found, a slot is
taken, and `dispatch` calls the handler. Errors become answers in `App.__call__` and nowhere else;
a defect is logged under a reference, and the client gets only the reference.
"""

import asyncio
import logging
import os
import time
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from perdure.host import descriptors
from perdure.protocol import ag_ui
from perdure.protocol.api import API
from perdure.schema.errors import (
    DomainError,
    InvalidRequestError,
    MethodNotAllowedError,
    NotFoundError,
    ServiceUnavailableError,
    UnknownError,
)
from perdure.server import auth, binding, dispatch, response
from perdure.server.binding import Binding
from perdure.server.call import Handlers
from perdure.server.dispatch import AppContext
from perdure.server.guard import Guard
from perdure.server.handlers import (
    attention,
    command,
    event,
    fs,
    health,
    inbox,
    integration,
    job,
    location,
    mcp,
    message,
    permission,
    project,
    pty,
    question,
    revert,
    session,
    session_change,
    session_mcp,
    vcs,
)
from perdure.server.http.asgi import Receive, Scope, Send
from perdure.server.http.websocket import Upgrade
from perdure.server.pages import metrics_page, openapi_pages, web_login, web_page
from perdure.server.pages.web_login import WebLogin
from perdure.server.pages.web_page import WebPage
from perdure.server.request import Request
from perdure.server.response import Reply, Response, Stream
from perdure.server.routing import Match, Routes
from perdure.server.settings import ServerSettings

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

logger: Final = logging.getLogger(__name__)

HANDLERS: Final[Handlers] = {
    **health.HANDLERS,
    **location.HANDLERS,
    **project.HANDLERS,
    **session.HANDLERS,
    **attention.HANDLERS,
    **session_change.HANDLERS,
    **session_mcp.HANDLERS,
    **revert.HANDLERS,
    **inbox.HANDLERS,
    **message.HANDLERS,
    **job.HANDLERS,
    **command.HANDLERS,
    **permission.HANDLERS,
    **question.HANDLERS,
    **event.HANDLERS,
    **integration.HANDLERS,
    **mcp.HANDLERS,
    **fs.HANDLERS,
    **vcs.HANDLERS,
    **pty.HANDLERS,
}

_PAGES: Final = openapi_pages.PATHS | web_login.PATHS | {metrics_page.PATH}
_OPEN_PAGES: Final = frozenset({web_page.START_PATH, web_login.LOGIN_PATH})
"""Answered without credentials: they hold no secret, or check one of their own."""


def make_app(
    runtime: "Runtime",
    settings: ServerSettings,
    handlers: Handlers = HANDLERS,
    v1_handlers: Handlers | None = None,
    *,
    ag_ui_handlers: Handlers | None = None,
) -> "App":
    """Raises ValueError or HandlerTypeError when `handlers` are not those of the contract.

    `v1_handlers` replaces those of `server.v1`, `ag_ui_handlers` those of `server.ag_ui`; both are
    loaded on the first request for them.
    """
    routes = Routes[Binding]()
    for each in binding.bind_all(API, handlers):
        routes.add(each.endpoint.method, each.endpoint.path, each)
        for method, path in each.endpoint.other_routes:
            routes.add(method, path, each)
    return App(
        AppContext(runtime, settings, asyncio.Event()),
        routes,
        v1_handlers,
        ag_ui_handlers=ag_ui_handlers,
    )


class App:
    """An ASGI 3 application. `begin_shutdown` ends its streams; other requests finish."""

    def __init__(
        self,
        context: AppContext,
        routes: Routes[Binding],
        v1_handlers: Handlers | None = None,
        *,
        ag_ui_handlers: Handlers | None = None,
    ) -> None:
        self._context = context
        self._routes = routes
        self._guard = Guard(context.settings)
        self._ag_ui: Routes[Binding] | None = None
        self._ag_ui_handlers = ag_ui_handlers
        self._v1: Routes[Binding] | None = None
        self._v1_handlers = v1_handlers
        self._page = WebPage(context.settings.web_directory)
        self._login = WebLogin(context.settings, time.monotonic)

    def begin_shutdown(self) -> None:
        self._context.closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        began = time.perf_counter()
        with ExitStack() as held:
            try:
                reply = await self._answer(request, held)
            except DomainError as error:
                reply = response.failure(error, challenges=auth.may_challenge(request.headers))
            except Exception as error:
                declared = _declare_exhaustion(error)
                if declared is None:
                    ref = f"err_{os.urandom(4).hex()}"
                    logger.exception("request failed (%s)", ref)
                    declared = UnknownError(ref)
                reply = response.failure(declared)
            try:
                if isinstance(reply, Upgrade):
                    await reply.serve(receive, send)
                else:
                    await self._send(reply, request, send)
            finally:
                self._observe(request, reply, time.perf_counter() - began)

    async def _answer(self, request: Request, held: ExitStack) -> Reply:
        """`held` ends when the answer has been sent, and releases the request's slot then."""
        self._guard.check_sender(request)
        if auth.is_preflight(request.method, request.headers):
            return Response(204, b"", auth.preflight_headers(request.headers))
        if (page := self._find_page(request)) is not None:
            return page
        match = self._routes.match(request.path) or self._match_beside(request.path)
        bound = None if match is None else match.by_method.get(request.routed_method)
        endpoint = None if bound is None else bound.endpoint
        if not self._is_open_page(request):
            self._guard.check_credentials(request, endpoint)
        self._guard.check_upgrade(request, endpoint)
        if match is None:
            return await self._get_page(request)
        if bound is None:
            raise MethodNotAllowedError(request.method, _allowed_methods(match))
        slot = self._guard.hold_slot(request, held)
        reply = await self._dispatch(bound, request, match)
        if isinstance(reply, Upgrade) and not request.is_upgrade:
            raise InvalidRequestError("This path takes only WebSocket connections")
        if slot is not None and isinstance(reply, Stream | Upgrade):
            slot.count_as_stream()
        return reply

    def _find_page(self, request: Request) -> Response | None:
        """A file of the web page, which anyone may have."""
        if request.is_upgrade or request.routed_method != "GET":
            return None
        accepts_gzip = response.accepts_gzip(request.headers.get(b"accept-encoding", b""))
        return self._page.find(request.path, accepts_gzip=accepts_gzip)

    def _is_open_page(self, request: Request) -> bool:
        if request.path == metrics_page.PATH:
            return self._context.settings.open_metrics
        return request.path in _OPEN_PAGES

    def _observe(self, request: Request, reply: Reply, seconds: float) -> None:
        metrics = self._context.runtime.health.metrics
        if isinstance(reply, Response):
            status = reply.status
            metrics.observe("request", seconds)
        else:
            # It lasted as long as its client stayed.
            status = 101 if isinstance(reply, Upgrade) else 200
        metrics.count_answer(status)
        observe = self._context.settings.observe_request
        if observe is not None:
            observe(request.method, request.path, status, seconds)

    def _match_beside(self, path: bytes) -> Match[Binding] | None:
        """Routes beside the contract, which are loaded when the first path of them is asked for."""
        if path == ag_ui.PATH:
            if self._ag_ui is None:
                load = import_module("perdure.server.ag_ui.routes").make_routes
                self._ag_ui = cast("Routes[Binding]", load(self._ag_ui_handlers))
            return self._ag_ui.match(path)
        if not self._context.settings.v1 or path.startswith(b"/api") or path in _PAGES:
            return None
        if self._v1 is None:
            # Imported late: most servers are asked for V2 alone.
            load = import_module("perdure.server.v1.routes").make_routes
            self._v1 = cast("Routes[Binding]", load(self._context.runtime, self._v1_handlers))
        return self._v1.match(path)

    async def _get_page(self, request: Request) -> Response:
        """A page that is no operation of the contract; else there is no such path."""
        if request.path not in _PAGES:
            raise NotFoundError(f"No such path: {request.path[:200].decode('latin-1')}")
        if request.path in web_login.PATHS:
            return await self._login.answer(request)
        if request.routed_method != "GET":
            raise MethodNotAllowedError(request.method, openapi_pages.METHODS)
        if request.path == metrics_page.PATH:
            return await metrics_page.get_page(self._context.runtime)
        return openapi_pages.get_page(request.path)

    async def _dispatch(self, bound: Binding, request: Request, match: Match[Binding]) -> Reply:
        try:
            return await dispatch.dispatch(bound, request, match.params, self._context)
        except DomainError as error:
            if bound.endpoint.group != "v1":
                raise
            return response.v1_failure(error)

    async def _send(self, reply: Response | Stream, request: Request, send: Send) -> None:
        headers = self._guard.response_headers(request)
        is_head = request.method == "HEAD"
        if isinstance(reply, Stream):
            await reply.send_to(send, headers, is_head=is_head)
            return
        reply = await response.compressed(reply, request.headers.get(b"accept-encoding", b""))
        await reply.send_to(send, headers, is_head=is_head, is_upgrade=request.is_upgrade)


def _declare_exhaustion(error: Exception) -> ServiceUnavailableError | None:
    """The answer where the process can open no more files: that is no defect, and it passes."""
    if not isinstance(error, OSError) or not descriptors.are_exhausted(error):
        return None
    logger.warning("a request was refused: %s; raise `ulimit -n`", error)
    message = "The server can open no more files; try again, or raise its `ulimit -n`"
    return ServiceUnavailableError(message, service="files")


def _allowed_methods(match: Match[Binding]) -> tuple[str, ...]:
    methods = set(match.by_method)
    return tuple(sorted(methods | {"HEAD"} if "GET" in methods else methods))
