"""Connects to MCP servers, behind the McpConnector port.

The package `mcp` and what it needs take most of a second to import and 50 MB: they are loaded by
the first connection, in a thread, so that a program without servers starts and stays as it was.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

from perdure.ports import PipedProcesses
from perdure.ports.mcp import McpConnection, McpEndpoint, McpError, McpHandlers, McpProcess

_ADAPTER: Final = "perdure.host.mcp.sdk_connection"
_PACKAGES: Final = ("mcp", "mcp_types")


class LocalMcpConnector:
    """Adapter of ports.mcp.McpConnector."""

    def __init__(self, processes: PipedProcesses) -> None:
        self._processes = processes

    @asynccontextmanager
    async def connect(
        self, target: McpProcess | McpEndpoint, handlers: McpHandlers
    ) -> AsyncGenerator[McpConnection]:
        try:
            adapter = await asyncio.to_thread(import_module, _ADAPTER)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
                raise
            raise McpError(
                "MCP servers need a package that is not installed: pip install 'perdure[mcp]'"
            ) from error
        opened = (
            adapter.open_process(target, handlers, processes=self._processes)
            if isinstance(target, McpProcess)
            else adapter.open_endpoint(target, handlers)
        )
        async with opened as connection:
            yield connection
