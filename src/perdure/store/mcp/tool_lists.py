"""Lists of tools of MCP servers: operational state, shared by all processes of one store.

A list is kept by the digest of its content, so that servers with the same tools share it. The lists
that were used longest ago are removed, except the newest of a server.
"""

import logging

import msgspec

from perdure.core import limits
from perdure.core.mcp import tool_list
from perdure.core.mcp.tool_list import McpToolList
from perdure.ports import Clock, Database, Transaction

logger = logging.getLogger(__name__)


class StoredToolLists:
    """Adapter of location.mcp.tool_lists.ToolLists."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def last(self, server: str) -> McpToolList | None:
        return await self._read(
            "SELECT l.data FROM mcp_server AS s JOIN mcp_tool_list AS l ON l.digest = s.list"
            " WHERE s.digest = :digest",
            server,
        )

    async def get(self, digest: str) -> McpToolList | None:
        return await self._read("SELECT data FROM mcp_tool_list WHERE digest = :digest", digest)

    async def put(self, server: str, found: McpToolList) -> None:
        data, now = found.encode().decode(), self._clock.now_millis()

        async def job(tx: Transaction) -> None:
            await tx.execute(
                "INSERT INTO mcp_tool_list (digest, data, time_used)"
                " VALUES (:digest, :data, :now)"
                " ON CONFLICT (digest) DO UPDATE SET data = :data, time_used = :now",
                {"digest": found.digest, "data": data, "now": now},
            )
            await tx.execute(
                "INSERT OR REPLACE INTO mcp_server (digest, list) VALUES (:server, :digest)",
                {"server": server, "digest": found.digest},
            )
            await _remove_oldest(tx)

        await self._database.write(job)

    async def _read(self, sql: str, digest: str) -> McpToolList | None:
        rows = await self._database.read(lambda tx: tx.fetch(sql, {"digest": digest}))
        if not rows:
            return None
        try:
            return tool_list.decode(str(rows[0][0]).encode())
        except msgspec.DecodeError as error:
            # The server is asked again, so nothing is lost.
            logger.warning("a stored list of MCP tools cannot be read: %s", error)
            return None


async def _remove_oldest(tx: Transaction) -> None:
    await tx.execute(
        "DELETE FROM mcp_server WHERE rowid NOT IN"
        " (SELECT rowid FROM mcp_server ORDER BY rowid DESC LIMIT :most)",
        {"most": limits.MCP_LISTS_KEPT_MAX},
    )
    await tx.execute(
        "DELETE FROM mcp_tool_list WHERE digest NOT IN (SELECT list FROM mcp_server)"
        " AND rowid NOT IN"
        " (SELECT rowid FROM mcp_tool_list ORDER BY time_used DESC, rowid DESC LIMIT :most)",
        {"most": limits.MCP_LISTS_KEPT_MAX},
    )
