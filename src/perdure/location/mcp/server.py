"""One MCP server: started, listed, called, and started again after growing pauses when it ends.

One task runs it until it is stopped. Calls wait until it is connected, within its start time.

Invariant: when `run` returns, the process has ended and no call waits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from perdure.core import limits
from perdure.core.mcp import restart, tool_list
from perdure.core.mcp.tool_list import McpToolList
from perdure.core.settings import session_mcp
from perdure.core.settings.mcp_servers import McpServer
from perdure.location.mcp.calls import OpenCalls
from perdure.location.mcp.tool_lists import ToolLists
from perdure.ports import DatabaseError, Questioner
from perdure.ports.mcp import (
    McpConnection,
    McpConnector,
    McpEndpoint,
    McpError,
    McpHandlers,
    McpListKind,
    McpLoginRequiredError,
    McpProcess,
)
from perdure.schema import redaction
from perdure.schema.codec import JsonObject
from perdure.schema.settings.mcp import McpStatus
from perdure.schema.value import Value
from perdure.tools.api import schema_tool
from perdure.tools.api.tool import ToolCallContext, ToolFailure

logger = logging.getLogger(__name__)

_SOON_SECONDS: Final = 5.0
"""A call waits for a restart that comes this soon."""


class ServerDeps(Value, kw_only=True):
    """What a server is run with."""

    connector: McpConnector
    lists: ToolLists
    resolve: Callable[[McpServer], Awaitable[McpProcess | McpEndpoint]]
    """Says how it is started now: in a sandbox, with which variables. Raises McpError."""
    changed: Callable[[], None]
    """Called after each change of its state or its list."""
    questions: Questioner
    roots: tuple[str, ...] = ()


class RunningServer:
    def __init__(self, server: McpServer, deps: ServerDeps) -> None:
        self.server = server
        self.status: McpStatus = "starting"
        self.error: str | None = None
        self.list: McpToolList | None = None
        """The newest list that is known."""
        self.problems: tuple[str, ...] = ()
        self.tried = asyncio.Event()
        """Set when the first start has succeeded or failed."""
        self._limits = ""
        """What it cannot do, where it runs in a sandbox."""
        self._deps = deps
        self._calls = OpenCalls(server.name, deps.questions)
        self._connection: McpConnection | None = None
        self._connected = asyncio.Event()
        self._woken = asyncio.Event()
        """Set to end the present connection or pause."""
        self._stopped = False
        self._task: asyncio.Task[None] | None = None
        self._stale = asyncio.Event()
        """Set when the server says that its list changed."""
        self._next_start = 0.0

    async def run(self) -> None:
        """Run the server until `stop`, or until this is cancelled."""
        failures = 0
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        try:
            while not self._stopped:
                self._woken.clear()
                began = loop.time()
                await self._connect_once()
                if self._woken.is_set():
                    failures = 0
                    continue
                failures = 1 if loop.time() - began > limits.MCP_STEADY_SECONDS else failures + 1
                await self._pause(restart.pause_seconds(failures))
        finally:
            if not self._stopped:
                # A defect, which is logged with its task.
                self._fail("it failed in an unexpected way; the log says how")
            self._stopped = True
            self._release()

    def stop(self) -> None:
        """End the server; `run` returns soon after, also if the server does not start."""
        self._stopped = True
        self._woken.set()
        if self._task is not None and not self._connected.is_set():
            self._task.cancel()

    def restart(self) -> None:
        """Start it again now, also while it pauses."""
        self._set_status("starting")
        self._woken.set()

    async def call(self, tool: str, arguments: JsonObject, context: ToolCallContext) -> JsonObject:
        """Call a tool, once the server is connected. Raises ToolFailure."""
        connection = await self.wait_connected()
        with self._calls.begin(context) as call:
            try:
                async with asyncio.timeout(self.server.request_seconds) as limit:
                    call.hold(limit, self.server.request_seconds)
                    return await connection.call_tool(tool, arguments, call.report)
            except TimeoutError as error:
                seconds = self.server.request_seconds
                raise ToolFailure(
                    f"The MCP server {self.server.name} did not answer within {seconds:g} s,"
                    " and the call was cancelled."
                ) from error
            except McpError as error:
                raise ToolFailure(f"The MCP server {self.server.name} failed: {error}") from error

    @property
    def connection(self) -> McpConnection | None:
        """The connection, if there is one now."""
        return self._connection

    async def _connect_once(self) -> None:
        """Connect, and stay connected until the server ends or another start is asked for."""
        self._set_status("starting")
        seconds = self.server.startup_seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                target = await self._deps.resolve(self.server)
                self._limits = target.limits if isinstance(target, McpProcess) else ""
                handlers = McpHandlers(
                    changed=self._on_list_changed, elicit=self._calls.elicit, roots=self._deps.roots
                )
                async with self._deps.connector.connect(target, handlers) as connection:
                    self._stale.clear()
                    await self._read_list(connection)
                    limit.reschedule(None)
                    self._connection = connection
                    self._connected.set()
                    self._set_status("connected")
                    lost = await self._follow(connection)
            self._fail(lost)
        except McpLoginRequiredError as error:
            self._fail(str(error), status="needs_auth")
        except TimeoutError:
            self._fail(f"it took more than {seconds:g} s to start")
        except McpError as error:
            self._fail(str(error))
        finally:
            self._connection = None
            self._connected.clear()

    async def _follow(self, connection: McpConnection) -> str:
        """Read the list again when it changes; returns why the connection is over."""
        async with asyncio.TaskGroup() as group:
            closed = group.create_task(connection.wait_closed(), name="end of an MCP server")
            woken = group.create_task(self._woken.wait(), name="restart of an MCP server")
            reading = group.create_task(self._read_changes(connection), name="MCP tools")
            await asyncio.wait((closed, woken), return_when=asyncio.FIRST_COMPLETED)
            for task in (closed, woken, reading):
                task.cancel()
        return closed.result() if closed.done() and not closed.cancelled() else ""

    async def _read_changes(self, connection: McpConnection) -> None:
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                async with asyncio.timeout(self.server.request_seconds):
                    await self._read_list(connection)
            except (McpError, TimeoutError) as error:
                logger.warning("the tools of %s were not read again: %s", self.server.name, error)

    async def _read_list(self, connection: McpConnection) -> None:
        lists = connection.lists
        tools = await connection.list("tools") if "tools" in lists else []
        resources = await connection.list("resources") if "resources" in lists else []
        read = tool_list.read_list(
            tools,
            connection.instructions,
            has_resources=bool(resources),
            fault=schema_tool.find_fault,
        )
        if read.problems and read.problems != self.problems:
            left_out = "; ".join(read.problems)
            logger.warning("MCP server %s: not offered: %s", self.server.name, left_out)
        is_new = self.list is None or read.list.digest != self.list.digest
        self.list, self.problems = read.list, read.problems
        if is_new:
            try:
                await self._deps.lists.put(self.server.digest, read.list)
            except DatabaseError as error:
                logger.warning("the tools of %s were not kept: %s", self.server.name, error)
            self._deps.changed()

    async def _pause(self, seconds: float) -> None:
        self._next_start = asyncio.get_running_loop().time() + seconds
        # A login is a person's act, and starts it again.
        waits = None if self.status == "needs_auth" else seconds
        try:
            async with asyncio.timeout(waits):
                await self._woken.wait()
        except TimeoutError:
            return

    async def wait_connected(self) -> McpConnection:
        """The connection, once there is one. Raises ToolFailure."""
        if self.status == "failed" and not self._stopped:
            left = self._next_start - asyncio.get_running_loop().time()
            if left > _SOON_SECONDS:
                raise ToolFailure(
                    f"The MCP server {self.server.name} is not connected: {self.error}."
                    f" It is started again in {left:.0f} s."
                )
        elif self.status == "needs_auth":
            raise ToolFailure(
                f"The MCP server {self.server.name} wants a login. Ask the person to run:"
                f" perdure mcp login {self.server.name}"
            )
        try:
            async with asyncio.timeout(self.server.startup_seconds + _SOON_SECONDS):
                await self._connected.wait()
        except TimeoutError as error:
            raise ToolFailure(
                f"The MCP server {self.server.name} is not connected: {self.error or 'it starts'}"
            ) from error
        if self._connection is None:
            raise ToolFailure(f"The MCP server {self.server.name} was stopped.")
        return self._connection

    def _on_list_changed(self, kind: McpListKind) -> None:
        self._stale.set()

    def _fail(self, why: str, *, status: McpStatus = "failed") -> None:
        if self._stopped or self._woken.is_set():
            return
        # It may quote the last words of a program, or the answer of a server.
        told = "; ".join(filter(None, (why, self._limits)))
        self.error = redaction.redact_message(told, session_mcp.secrets_of(self.server))
        logger.warning("MCP server %s: %s", self.server.name, self.error)
        self._set_status(status)
        self.tried.set()

    def _set_status(self, status: McpStatus) -> None:
        if status == "connected":
            self.error = None
            self.tried.set()
        if status != self.status:
            self.status = status
            self._deps.changed()

    def _release(self) -> None:
        """Let those who wait go on: the server does not come any more."""
        self.tried.set()
        self._connected.set()
