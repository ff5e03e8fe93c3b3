"""Port for the lists of tools that servers had when they were last connected.

They are offered at once while a server starts, and to a Session for as long as its Context Epoch
names them. The adapter is store.mcp.tool_lists.
"""

from typing import Protocol

from perdure.core.mcp.tool_list import McpToolList


class ToolLists(Protocol):
    async def last(self, server: str) -> McpToolList | None:
        """The newest list of the server with this digest."""
        ...

    async def get(self, digest: str) -> McpToolList | None:
        """The list with this content."""
        ...

    async def put(self, server: str, found: McpToolList) -> None:
        """Keep a list durably, as the newest of the server."""
        ...


class MemoryToolLists:
    """Keeps the lists in memory: those of an earlier process are not known."""

    def __init__(self) -> None:
        self._by_digest: dict[str, McpToolList] = {}
        self._last: dict[str, str] = {}

    async def last(self, server: str) -> McpToolList | None:
        return self._by_digest.get(self._last.get(server, ""))

    async def get(self, digest: str) -> McpToolList | None:
        return self._by_digest.get(digest)

    async def put(self, server: str, found: McpToolList) -> None:
        self._by_digest[found.digest] = found
        self._last[server] = found.digest
