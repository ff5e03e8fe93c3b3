"""Lists of MCP tools are kept by content, found again by another process, and bounded."""

from perdure.core import limits
from perdure.core.mcp.tool_list import McpTool, McpToolList
from perdure.ports import Transaction
from perdure.store.log.event_store import EventStore
from perdure.store.mcp.tool_lists import StoredToolLists
from perdure.testing import ManualClock


def made(*names: str, instructions: str = "") -> McpToolList:
    tools = tuple(McpTool(name=name, description="Ä", schema={"type": "object"}) for name in names)
    return McpToolList(tools=tools, instructions=instructions)


async def count(store: EventStore, table: str) -> int:
    rows = await store.database.read(lambda tx: tx.fetch(f"SELECT count(*) FROM {table}"))
    found = rows[0][0]
    assert isinstance(found, int)
    return found


async def test_the_newest_list_of_a_server_is_found_and_older_ones_by_their_digest(
    store: EventStore,
) -> None:
    lists = StoredToolLists(store.database, ManualClock())
    assert await lists.last("one") is None
    assert await lists.get("nothing") is None
    first, second = made("a"), made("a", "b", instructions="Be kind.")
    await lists.put("one", first)
    await lists.put("one", second)
    await lists.put("two", first)
    again = StoredToolLists(store.database, ManualClock())
    assert await again.last("one") == second
    assert await again.last("two") == first
    assert await again.get(first.digest) == first
    assert await count(store, "mcp_tool_list") == 2


async def test_the_oldest_lists_go_and_the_newest_of_a_server_stays(store: EventStore) -> None:
    lists = StoredToolLists(store.database, ManualClock())
    await lists.put("quiet", made("kept"))
    for number in range(limits.MCP_LISTS_KEPT_MAX + 10):
        await lists.put("busy", made(f"tool{number}"))
    assert await count(store, "mcp_tool_list") <= limits.MCP_LISTS_KEPT_MAX + 2
    assert await lists.last("quiet") == made("kept")
    assert await lists.get(made("tool0").digest) is None
    assert await lists.last("busy") == made(f"tool{limits.MCP_LISTS_KEPT_MAX + 9}")


async def test_a_damaged_row_is_as_if_it_were_not_there(store: EventStore) -> None:
    lists = StoredToolLists(store.database, ManualClock())
    await lists.put("one", made("a"))

    async def damage(tx: Transaction) -> None:
        await tx.execute("UPDATE mcp_tool_list SET data = '{\"tools\": 3'")

    await store.database.write(damage)
    assert await lists.last("one") is None
    await lists.put("one", made("a"))
    assert await lists.last("one") == made("a")
