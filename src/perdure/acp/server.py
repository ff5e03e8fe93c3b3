"""Serves one editor: answers its first request at once, and loads the rest behind it.

`initialize` needs nothing but this program's name and version. The client, and with it the runtime
or the connection to a server, is opened when that answer is on its way.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Final

from perdure.acp.client_features import ClientFeatures, read_features
from perdure.acp.schema import requests
from perdure.acp.schema.answers import AuthMethod, Implementation, Initialized
from perdure.acp.wire.rpc import Answered, Connection, LineStream, Method, read_params
from perdure.acp.wire.rpc_error import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from perdure.schema.errors import PerdureError
from perdure.version import __version__

if TYPE_CHECKING:
    from perdure.acp.agent import Agent
    from perdure.client.client import Client

logger = logging.getLogger(__name__)

OpenClient = Callable[[], AbstractAsyncContextManager["Client"]]
"""Opens the client that everything is asked of. Raises OpenError."""
FIRST_VERSION: Final = 1


class OpenError(PerdureError):
    """The client could not be opened; the text says why, for people."""


_INITIALIZE: Final = "initialize"


class EditorServer:
    def __init__(self, stream: LineStream, open_client: OpenClient) -> None:
        self._connection = Connection(stream, self._find_method)
        self._open_client = open_client
        self._features: ClientFeatures | None = None
        self._wanted = asyncio.Event()
        self._agent: asyncio.Future[Agent] = asyncio.get_running_loop().create_future()

    async def serve(self) -> None:
        """Answer the editor until it closes its end. The work of Sessions does not end then."""
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(self._work())
            await self._connection.serve()
            working.cancel()

    async def _find_method(self, name: str) -> Method | None:
        if name == _INITIALIZE:
            return Method(read_params(requests.Initialize, self._initialize))
        if self._features is None:
            raise RpcError(INVALID_REQUEST, f"`{_INITIALIZE}` must be the first request")
        self._wanted.set()
        agent = await asyncio.shield(self._agent)
        return agent.methods.get(name)

    async def _initialize(self, given: requests.Initialize) -> Answered:
        if self._features is None:
            self._features = read_features(given.client_capabilities)
        return Answered(_describe(self._features), self._begin_loading)

    async def _begin_loading(self) -> None:
        self._wanted.set()

    # ---- what is loaded behind ------------------------------------------------------------------

    async def _work(self) -> None:
        """Hold the client open, and take its events, until cancelled."""
        await self._wanted.wait()
        assert self._features is not None
        try:
            async with AsyncExitStack() as stack:
                # In a thread, so that the connection answers meanwhile.
                await asyncio.to_thread(import_module, "perdure.acp.make_agent")
                from perdure.acp.make_agent import make_agent

                client = await stack.enter_async_context(self._open_client())
                agent = make_agent(client, self._connection, self._features)
                self._agent.set_result(agent)
                await agent.run()
        except OpenError as error:
            if self._agent.done():
                raise
            logger.warning("%s", error)
            self._agent.set_exception(RpcError(INTERNAL_ERROR, str(error)))


def _describe(features: ClientFeatures) -> Initialized:
    return Initialized(
        protocol_version=FIRST_VERSION,
        agent_capabilities={
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "fork": {},
            },
            "auth": {},
        },
        auth_methods=tuple(_list_logins(features)),
        agent_info=Implementation("perdure", "Perdure", __version__),
    )


def _list_logins(features: ClientFeatures) -> list[AuthMethod]:
    stored = AuthMethod(
        "stored",
        "Connected providers",
        "Use the providers that are connected; `perdure auth login` in a terminal connects one",
    )
    if not features.terminal_login:
        return [stored]
    login = AuthMethod(
        "login", "Log in", "Connect a provider in a terminal", "terminal", ("--login",)
    )
    return [login, stored]
