"""A connection to an MCP server by the package `mcp`, which speaks both eras of the protocol.

Imported by host.mcp.connector on first use. Everything that the package raises becomes an McpError
with words for a person.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx2
import mcp_types as types
from mcp.client._transport import Transport
from mcp.client.client import Client
from mcp.client.session import (
    ClientRequestContext,
    ElicitationFnT,
    IncomingMessage,
    ListRootsFnT,
    MessageHandlerFnT,
)
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from perdure.core import limits
from perdure.core.mcp import result as mcp_result
from perdure.host.mcp import inbound, stdio
from perdure.ports import PipedProcesses
from perdure.ports.mcp import (
    McpConnection,
    McpEndpoint,
    McpError,
    McpHandlers,
    McpListKind,
    McpLoginRequiredError,
    McpProcess,
    McpProgress,
)
from perdure.schema.codec import JsonObject, JsonValue
from perdure.version import __version__

_CLIENT: Final = types.Implementation(name="perdure", version=__version__)
_UNAUTHORIZED: Final = 401
_FAILURES: Final = (
    McpError,
    MCPError,
    ValidationError,
    RuntimeError,
    ValueError,
    OSError,
    httpx2.HTTPError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)
"""What the package raises for a server that does not behave, or cannot be reached."""


@asynccontextmanager
async def open_process(
    target: McpProcess, handlers: McpHandlers, *, processes: PipedProcesses
) -> AsyncGenerator[McpConnection]:
    closing = _Closing()
    transport = stdio.stdio_streams(target, processes, closing.close)
    async with _open_connection(transport, handlers, closing) as connection:
        yield connection


@asynccontextmanager
async def open_endpoint(
    target: McpEndpoint, handlers: McpHandlers
) -> AsyncGenerator[McpConnection]:
    closing = _Closing()

    async def look(response: httpx2.Response) -> None:
        closing.refused = response.status_code == _UNAUTHORIZED

    timeout = httpx2.Timeout(limits.MCP_CONNECT_SECONDS_MAX, read=limits.MCP_TIMEOUT_SECONDS_MAX)
    async with httpx2.AsyncClient(
        headers=dict(target.headers), timeout=timeout, event_hooks={"response": [look]}
    ) as client:
        transport = inbound.checked_streams(
            streamable_http_client(
                target.url, http_client=client, max_sse_event_size=limits.MCP_MESSAGE_BYTES_MAX
            )
        )
        async with _open_connection(transport, handlers, closing) as connection:
            yield connection


@asynccontextmanager
async def _open_connection(
    transport: Transport, handlers: McpHandlers, closing: "_Closing"
) -> AsyncGenerator["SdkConnection"]:
    client = Client(
        transport,
        client_info=_CLIENT,
        elicitation_callback=_elicitation(handlers),
        list_roots_callback=_roots(handlers),
        message_handler=_message_handler(handlers),
        cache=None,
    )
    try:
        async with client:
            yield SdkConnection(client, handlers, closing)
    except _FAILURES as error:
        raise _translated(error, closing) from error
    except BaseExceptionGroup as group:
        # Task groups of the package wrap what is raised within them.
        raise _leaf(group, closing) from group


class _Closing:
    """Whether the connection is lost, and why."""

    def __init__(self) -> None:
        self.reason = ""
        self.event = asyncio.Event()
        self.refused = False
        """Whether the last answer over HTTP said that a login is needed."""

    def close(self, reason: str) -> None:
        if not self.event.is_set():
            self.reason = reason
            self.event.set()


class SdkConnection:
    """Adapter of ports.mcp.McpConnection."""

    def __init__(self, client: Client, handlers: McpHandlers, closing: _Closing) -> None:
        self._client = client
        self._handlers = handlers
        self._closing = closing

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""

    @property
    def lists(self) -> frozenset[McpListKind]:
        has = self._client.server_capabilities
        given = {"tools": has.tools, "prompts": has.prompts, "resources": has.resources}
        kinds: tuple[McpListKind, ...] = ("tools", "prompts", "resources")
        return frozenset(kind for kind in kinds if given[kind] is not None)

    async def list(self, kind: McpListKind) -> list[JsonValue]:
        found: list[JsonValue] = []
        cursor: str | None = None
        for _ in range(limits.MCP_PAGES_MAX):
            page = await self._ask(self._page(kind, cursor))
            found += page.get(kind) or []
            before, cursor = cursor, page.get("nextCursor")
            if not cursor or cursor == before or len(found) > limits.MCP_LISTED_MAX:
                break
        return found

    async def call_tool(
        self, name: str, arguments: JsonObject, progress: Callable[[McpProgress], None]
    ) -> JsonObject:
        return await self._ask(
            self._client.call_tool(
                name, dict(arguments), progress_callback=_progress_callback(progress)
            )
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> JsonObject:
        return await self._ask(self._client.get_prompt(name, dict(arguments)))

    async def read_resource(self, uri: str) -> JsonObject:
        return await self._ask(self._client.read_resource(uri))

    async def wait_closed(self) -> str:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(self._follow_changes(), name="changes of an MCP server")
            await self._closing.event.wait()
            following.cancel()
        return self._closing.reason

    async def _follow_changes(self) -> None:
        """Ask a server of the newer era to tell its changes; others tell them unasked."""
        if self._client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        while True:
            try:
                async with self._client.listen(
                    tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
                ) as changes:
                    async for _ in changes:
                        self._handlers.changed("tools")
            except MCPError:
                # It has no such stream: its lists do not change.
                return
            except (SubscriptionLost, TimeoutError):
                await asyncio.sleep(limits.MCP_LISTEN_PAUSE_SECONDS)
                self._handlers.changed("tools")
            else:
                return

    def _page(self, kind: McpListKind, cursor: str | None) -> Awaitable[BaseModel]:
        match kind:
            case "tools":
                return self._client.list_tools(cursor=cursor)
            case "prompts":
                return self._client.list_prompts(cursor=cursor)
            case "resources":
                return self._client.list_resources(cursor=cursor)

    async def _ask(self, request: Awaitable[BaseModel]) -> JsonObject:
        """The answer as JSON. Raises McpError."""
        try:
            answer = await request
        except _FAILURES as error:
            failure = _translated(error, self._closing)
            if _is_lost(error) or self._closing.refused:
                self._closing.close(str(failure))
            raise failure from error
        except BaseExceptionGroup as group:
            raise _leaf(group, self._closing) from group
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def _progress_callback(report: Callable[[McpProgress], None]) -> ProgressFnT:
    async def tell(progress: float, total: float | None, message: str | None) -> None:
        report(McpProgress(progress, total, message or ""))

    return tell


def _elicitation(handlers: McpHandlers) -> ElicitationFnT:
    async def elicit(
        context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        asked = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        return types.ElicitResult.model_validate(await handlers.elicit(asked))

    return elicit


def _roots(handlers: McpHandlers) -> ListRootsFnT:
    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(
            {"roots": [{"uri": uri} for uri in handlers.roots]}
        )

    return list_roots


def _message_handler(handlers: McpHandlers) -> MessageHandlerFnT:
    async def handle(message: IncomingMessage) -> None:
        match message:
            case types.ToolListChangedNotification():
                handlers.changed("tools")
            case types.PromptListChangedNotification():
                handlers.changed("prompts")
            case types.ResourceListChangedNotification():
                handlers.changed("resources")
            case _:
                return

    return handle


def _leaf(group: BaseExceptionGroup[BaseException], closing: _Closing) -> BaseException:
    """The first exception in the group that is no cancellation, translated if it is known."""
    failures = group.split(asyncio.CancelledError)[1]
    first = _first(failures or group)
    return _translated(first, closing) if isinstance(first, _FAILURES) else first


def _first(error: BaseException) -> BaseException:
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):
            return _first(first)
        case _:
            return error


def _translated(error: BaseException, closing: _Closing) -> McpError:
    if isinstance(error, McpError):
        return error
    if closing.refused:
        return McpLoginRequiredError("the server wants a login")
    if isinstance(error, ValidationError):
        return McpError("the server answered with something that the protocol does not know")
    if closing.event.is_set():
        return McpError(closing.reason)
    return McpError(mcp_result.bounded_error(str(error)) or type(error).__name__)


def _is_lost(error: BaseException) -> bool:
    """Whether no further request can be answered on this connection."""
    if isinstance(error, MCPError):
        return error.code == types.CONNECTION_CLOSED or "session" in error.message.lower()
    return not isinstance(error, ValidationError | ValueError | RuntimeError)
