"""The MCP servers of a Location: which of them run, and what is known of their tools.

One set for each Location and process, shared by its Sessions. The first boundary of a turn starts
them, and they end with the Location. A change of the configuration ends the servers that it changes
and no others.

Invariant: `prepare` returns within a bounded time, whatever servers do, and does not fail.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec import UNSET

from perdure.core import limits
from perdure.core.credentials import mcp_authorization as authorization
from perdure.core.mcp.tool_list import McpToolList
from perdure.core.settings.mcp_servers import McpAddress, McpProgram, McpServer, McpSettings
from perdure.location.mcp.server import RunningServer, ServerDeps
from perdure.location.mcp.tool_lists import ToolLists
from perdure.ports import DatabaseError, Questioner
from perdure.ports.mcp import McpConnector, McpEndpoint, McpProcess
from perdure.ports.sandbox import Containment
from perdure.ports.tasks import StartTask
from perdure.schema.settings.mcp import McpServerInfo, McpStatus
from perdure.schema.value import Confidential, Value

logger = logging.getLogger(__name__)


class ServerEnvironment(Confidential, kw_only=True):
    """How programs are started in a Location."""

    variables: Mapping[str, str]
    """Of the user, for servers of the user's own documents."""
    project_variables: Mapping[str, str]
    """Without secrets, for servers of the project."""
    containment: Containment | None
    """The sandbox, for servers of the project."""


async def _no_login(url: str) -> str | None:
    """The default of `authorization`."""
    return None


class McpServices(Value, kw_only=True):
    """What the servers of all Locations share."""

    connector: McpConnector
    lists: ToolLists
    start: StartTask
    authorization: Callable[[str], Awaitable[str | None]] = _no_login
    """The header `Authorization` for a server at this address; None without a login."""


class KnownServer(Value):
    """A server whose tools can be offered, running or not."""

    server: McpServer
    list: McpToolList


class McpServers:
    def __init__(
        self,
        directory: str,
        *,
        services: McpServices,
        questions: Questioner,
        changed: Callable[[], None],
    ) -> None:
        self._directory = directory
        self._services = services
        self._changed = changed
        self._questions = questions
        self._settings = McpSettings()
        self._environment: Callable[[], ServerEnvironment] | None = None
        self._running: dict[str, RunningServer] = {}
        self._last: dict[str, McpToolList | None] = {}
        """By digest of the server: the list of the last time, as it was in the store."""
        self._closed = False

    @property
    def is_configured(self) -> bool:
        return bool(self._settings.servers)

    def configure(
        self, settings: McpSettings, environment: Callable[[], ServerEnvironment]
    ) -> None:
        """Apply a configuration: servers that it changes or removes end. Starts nothing."""
        self._settings, self._environment = settings, environment
        wanted = {server.name: server for server in settings.servers if not server.disabled}
        for name, running in tuple(self._running.items()):
            if wanted.get(name) != running.server:
                del self._running[name]
                running.stop()

    async def prepare(self) -> None:
        """Start what is not running, and wait for tools that were never seen before."""
        if not self.is_configured or self._closed:
            return
        await self.load_known()
        for server in self._settings.servers:
            if not server.disabled and server.name not in self._running:
                self._start(server)
        unseen = [
            running.tried.wait() for running in self._running.values() if running.list is None
        ]
        if not unseen:
            return
        try:
            async with asyncio.timeout(limits.MCP_FIRST_LIST_SECONDS_MAX):
                await asyncio.gather(*unseen)
        except TimeoutError:
            logger.info("a turn goes on without the tools of MCP servers that still start")

    async def load_known(self) -> None:
        """Read the lists of the last time, once for each server."""
        for server in self._settings.servers:
            if server.digest not in self._last:
                try:
                    self._last[server.digest] = await self._services.lists.last(server.digest)
                except DatabaseError as error:
                    logger.warning("known tools of %s were not read: %s", server.name, error)

    def known(self) -> tuple[KnownServer, ...]:
        """The servers whose tools can be offered now, sorted by name."""
        found = (
            (server, self._list(server)) for server in self._settings.servers if not server.disabled
        )
        return tuple(KnownServer(server, known) for server, known in found if known is not None)

    async def get_list(self, digest: str) -> McpToolList | None:
        """The list with this content, of now or of an earlier time."""
        for known in self.known():
            if known.list.digest == digest:
                return known.list
        try:
            return await self._services.lists.get(digest)
        except DatabaseError as error:
            logger.warning("a list of MCP tools was not read: %s", error)
            return None

    def get(self, name: str) -> RunningServer | None:
        return self._running.get(name)

    def list_running(self) -> tuple[RunningServer, ...]:
        return tuple(self._running.values())

    def restart(self, name: str) -> bool:
        """Start a server again, or for the first time; returns whether there is one to start."""
        server = next((one for one in self._settings.servers if one.name == name), None)
        if server is None or server.disabled or self._closed:
            return False
        running = self._running.get(name)
        if running is None:
            self._start(server)
        else:
            running.restart()
        return True

    def reconnect(self, integration_id: str) -> None:
        """Start the servers again whose login changed."""
        for running in self._running.values():
            target = running.server.target
            if isinstance(target, McpAddress) and (
                authorization.integration_id(target.url) == integration_id
            ):
                running.restart()

    def describe(self, offered: Mapping[str, tuple[str, ...]]) -> tuple[McpServerInfo, ...]:
        """The servers as clients see them; `offered` are the names of their tools."""
        infos = [
            self._describe(server, offered.get(server.name, ()))
            for server in self._settings.servers
        ]
        infos += [
            McpServerInfo(
                name=name,
                type=UNSET,
                status="untrusted",
                error="the project asks for it; to allow it: perdure trust",
            )
            for name in self._settings.untrusted
        ]
        return tuple(sorted(infos, key=lambda info: info.name))

    def close(self) -> None:
        """End all servers."""
        self._closed = True
        while self._running:
            _, running = self._running.popitem()
            running.stop()

    def _list(self, server: McpServer) -> McpToolList | None:
        running = self._running.get(server.name)
        if running is not None and running.list is not None:
            return running.list
        return self._last.get(server.digest)

    def _start(self, server: McpServer) -> None:
        deps = ServerDeps(
            connector=self._services.connector,
            lists=self._services.lists,
            resolve=self._resolve,
            changed=self._changed,
            questions=self._questions,
            roots=(Path(os.path.realpath(self._directory)).as_uri(),),
        )
        running = self._running[server.name] = RunningServer(server, deps)
        running.list = self._last.get(server.digest)
        self._services.start(running.run())
        self._changed()

    async def _resolve(self, server: McpServer) -> McpProcess | McpEndpoint:
        match server.target:
            case McpAddress(url=url, headers=headers, oauth=oauth):
                login = None if oauth is None else await self._services.authorization(url)
                added = {} if login is None else {"Authorization": login}
                return McpEndpoint(url=url, headers={**added, **headers})
            case McpProgram() as program:
                return await self._resolve_program(server, program)

    async def _resolve_program(self, server: McpServer, program: McpProgram) -> McpProcess:
        assert self._environment is not None
        environment = self._environment()
        directory = os.path.join(self._directory, program.directory or "")
        if not server.of_project:
            variables = {**environment.variables, **program.environment}
            return McpProcess(arguments=program.command, directory=directory, environment=variables)
        variables = {**environment.project_variables, **program.environment}
        if environment.containment is None:
            return McpProcess(arguments=program.command, directory=directory, environment=variables)
        contained = await environment.containment.contain(
            program.command, directory=directory, environment=variables
        )
        return McpProcess(
            arguments=contained.arguments,
            directory=directory,
            environment=contained.environment,
            limits=_limits(environment.containment) if contained.is_confined else "",
        )

    def _describe(self, server: McpServer, tools: tuple[str, ...]) -> McpServerInfo:
        running = self._running.get(server.name)
        status: McpStatus = "disabled" if server.disabled else "waiting"
        if running is not None:
            status = running.status
        return McpServerInfo(
            name=server.name,
            type="local" if isinstance(server.target, McpProgram) else "remote",
            status=status,
            tools=tools,
            error=UNSET if running is None or running.error is None else running.error,
            problems=() if running is None else running.problems,
        )


def _limits(containment: Containment) -> str:
    """What the server of a project cannot do, for a person who wonders why it fails."""
    policy = containment.policy()
    network = "no network"
    if policy.network:
        network = "the network"
    elif policy.hosts is not None:
        network = "only the hosts of sandbox.network"
    return (
        f"the project names it, so it runs in the sandbox, with {network}, and writes only to the"
        " project and to sandbox.writable of your own configuration; docs/howto/mcp.md says what"
        " such a server needs"
    )
