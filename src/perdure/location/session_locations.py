"""SessionLocations: a Location as one Session has it, with the MCP servers that a client gave it.

Most Sessions have none, and get the Location itself. Others get one with the same services and
pending requests, whose MCP tools lie over those of the Location. What was given is looked at each
time, so a change is heard at the next boundary, also one that another process stored.

Invariant: the servers of a Session end when it has been idle for a moment, and at once when it has
none any more or its process ends.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from msgspec import field
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.settings import session_mcp
from perdure.core.settings.mcp_servers import McpServer
from perdure.location.agents import agents
from perdure.location.factory import SharedServices
from perdure.location.location import Location
from perdure.location.mcp import resources
from perdure.location.mcp.offered_tools import McpTools
from perdure.location.mcp.servers import ServerEnvironment
from perdure.location.mcp.session_servers import SessionMcpServers
from perdure.ports import CredentialStoreError
from perdure.ports.session_mcp import Version
from perdure.schema.ids import SessionID
from perdure.schema.live_event import McpChanged
from perdure.schema.value import State

logger = logging.getLogger(__name__)


class _OwnServers(State):
    """The servers of one Session, while they may run."""

    servers: SessionMcpServers
    version: Version | None = None
    given: tuple[McpServer, ...] = ()
    made_from: Location | None = None
    location: Location | None = None
    """With these servers."""
    holders: int = 0
    idle: asyncio.TimerHandle | None = field(default=None)


class SessionLocations:
    def __init__(
        self, shared: SharedServices, *, idle_seconds: float = limits.MCP_SESSION_IDLE_SECONDS
    ) -> None:
        self._shared = shared
        self._store = shared.session_servers
        self.idle_seconds = idle_seconds
        self._open: dict[SessionID, _OwnServers] = {}

    @contextmanager
    def using(self, session_id: SessionID, location: Location) -> Generator[Location]:
        """The Location of a Session. Its servers may run at least until the scope ends."""
        own = self._find(session_id, location)
        if own is None:
            yield location
            return
        own.holders += 1
        if own.idle is not None:
            own.idle.cancel()
            own.idle = None
        assert own.location is not None
        try:
            yield own.location
        finally:
            own.holders -= 1
            if own.holders == 0 and self._open.get(session_id) is own:
                loop = asyncio.get_running_loop()
                own.idle = loop.call_later(self.idle_seconds, self.close, session_id)

    def close(self, session_id: SessionID) -> None:
        """End the servers of a Session."""
        own = self._open.pop(session_id, None)
        if own is not None:
            if own.idle is not None:
                own.idle.cancel()
            own.servers.close()

    def close_all(self) -> None:
        for session_id in tuple(self._open):
            self.close(session_id)

    def reconnect(self, integration_id: str) -> None:
        """Start the servers again whose login changed."""
        for own in self._open.values():
            own.servers.reconnect(integration_id)

    def _find(self, session_id: SessionID, location: Location) -> _OwnServers | None:
        try:
            version = self._store.version(session_id)
        except CredentialStoreError as error:
            logger.warning("the MCP servers of %s are not used: %s", session_id, error)
            version = None
        if version is None:
            self.close(session_id)
            return None
        own = self._open.get(session_id)
        if own is not None and own.servers.below is not location.mcp_servers:
            # The Session has moved, or its Location was opened again.
            self.close(session_id)
            own = None
        if own is not None and own.version == version and own.made_from is location:
            return own
        given = self._read(session_id) if own is None or own.version != version else own.given
        if own is None:
            own = self._open[session_id] = _OwnServers(self._servers_over(location))
        own.version, own.given = version, given
        own.made_from, own.location = location, self._make(location, given, own.servers)
        return own

    def _read(self, session_id: SessionID) -> tuple[McpServer, ...]:
        try:
            return session_mcp.read_servers(self._store.load(session_id))
        except (CredentialStoreError, session_mcp.UnusableServerError) as error:
            logger.warning("the MCP servers of %s are not used: %s", session_id, error)
            return ()

    def _servers_over(self, location: Location) -> SessionMcpServers:
        shared = self._shared
        return SessionMcpServers(
            location.mcp_servers,
            location.ref.directory,
            services=shared.mcp,
            questions=location.questions,
            changed=lambda: shared.publish(location.ref, McpChanged()),
        )

    def _make(
        self, location: Location, given: tuple[McpServer, ...], servers: SessionMcpServers
    ) -> Location:
        """The Location with these servers beside its own."""
        shared, directory = self._shared, location.ref.directory
        joined = session_mcp.join(location.settings.mcp, given)
        servers.refused = tuple(one for one in given if one.name in joined.refused)
        used = tuple(one for one in given if one.name not in joined.refused)
        environment = ServerEnvironment(
            variables=shared.environment.variables, project_variables={}, containment=None
        )
        servers.configure(replace(joined.settings, servers=used, untrusted=()), lambda: environment)
        settings = replace(location.settings, mcp=joined.settings)
        known_agents = agents.load(settings, shared.environment)
        tools = location.tools.over()
        return replace(
            location,
            settings=settings,
            agents=known_agents,
            permissions=location.permissions.with_rules(known_agents.location_rules(directory)),
            tools=tools,
            attachments=location.attachments.with_resources(
                partial(resources.read_attached, servers)
            ),
            mcp_servers=servers,
            mcp=McpTools(servers, joined.settings, tools.registry),
        )
