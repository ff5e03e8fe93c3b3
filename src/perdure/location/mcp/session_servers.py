"""The MCP servers that a Session uses: those of its Location, and its own.

The Location's are shared by its Sessions and are not ended here. Its own run for it alone.
"""

import asyncio
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from perdure.core.settings import session_mcp
from perdure.core.settings.mcp_servers import McpProgram, McpServer
from perdure.location.mcp.server import RunningServer
from perdure.location.mcp.servers import KnownServer, McpServers, McpServices
from perdure.ports import Questioner
from perdure.schema.settings.mcp import McpServerInfo


class SessionMcpServers(McpServers):
    """`below` are the Location's. `configure` is given the Session's own."""

    def __init__(
        self,
        below: McpServers,
        directory: str,
        *,
        services: McpServices,
        questions: Questioner,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(directory, services=services, questions=questions, changed=changed)
        self.below = below
        self.refused: tuple[McpServer, ...] = ()
        """Servers of the Session whose name one of the configuration has."""

    @property
    def is_configured(self) -> bool:
        return super().is_configured or self.below.is_configured

    async def prepare(self) -> None:
        await asyncio.gather(self.below.prepare(), super().prepare())

    async def load_known(self) -> None:
        await self.below.load_known()
        await super().load_known()

    def known(self) -> tuple[KnownServer, ...]:
        both = (*self.below.known(), *super().known())
        return tuple(sorted(both, key=lambda one: one.server.name))

    def get(self, name: str) -> RunningServer | None:
        return super().get(name) or self.below.get(name)

    def list_running(self) -> tuple[RunningServer, ...]:
        return (*self.below.list_running(), *super().list_running())

    def restart(self, name: str) -> bool:
        return super().restart(name) or self.below.restart(name)

    def describe(self, offered: Mapping[str, tuple[str, ...]]) -> tuple[McpServerInfo, ...]:
        own = tuple(replace(info, session=True) for info in super().describe(offered))
        refused = tuple(
            McpServerInfo(
                name=server.name,
                type="local" if isinstance(server.target, McpProgram) else "remote",
                status="failed",
                error=session_mcp.COLLIDES,
                session=True,
            )
            for server in self.refused
        )
        both = (*self.below.describe(offered), *own, *refused)
        return tuple(sorted(both, key=lambda info: info.name))
