"""MCP servers that do not behave: each ends in words, in time, and leaves nothing running."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.session.tool import TextContent
from perdure.tools.api.registry import ToolError, ToolSuccess
from tests.support.mcp.mcp_bench import McpBench, heard, mcp_bench, scripted
from tests.support.polling import until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[McpBench]:
    async with mcp_bench(tmp_path) as opened:
        yield opened


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_program_that_does_not_exist_is_named(bench: McpBench) -> None:
    bench.configure(it={"type": "local", "command": ["/does/not/exist"]})
    assert await bench.prepare() == []
    info = bench.info("it")
    assert info.status == "failed"
    assert "/does/not/exist" in str(info.error)


async def test_one_that_dies_at_once_is_started_again_after_growing_pauses(
    bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted("dead", tmp_path / "journal"))
    assert await bench.prepare() == []
    assert bench.info("it").status == "failed"
    assert str(bench.info("it").error).startswith("it ended")
    began = asyncio.get_running_loop().time()
    for _ in range(2):
        await bench.until("it", "starting")
        await bench.until("it", "failed")
    seconds = asyncio.get_running_loop().time() - began
    assert seconds > limits.MCP_RESTART_SECONDS_MIN * (1 + 2) * 0.9
    assert len(heard(tmp_path / "journal")) == 3


async def test_one_that_never_answers_fails_after_its_start_time(
    bench: McpBench, tmp_path: Path
) -> None:
    entry = scripted("never_starts", tmp_path / "journal", timeout={"startup": 300})
    bench.configure(it=entry)
    assert await bench.prepare() == []
    assert bench.info("it").error == "it took more than 0.3 s to start"
    assert not is_running(heard(tmp_path / "journal")[0]["pid"])


async def test_a_call_that_is_not_answered_is_cancelled_and_the_next_one_is_made(
    bench: McpBench, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    bench.configure(it=scripted("hangs_in_a_call", journal, timeout={"request": 200}))
    await bench.prepare()
    settled = await bench.call("it_say", text="x")
    assert isinstance(settled, ToolError)
    assert "did not answer within 0.2 s" in settled.message
    assert bench.info("it").status == "connected"
    again = await bench.call("it_say", text="y")
    assert isinstance(again, ToolError)
    told = [message.get("method") for message in heard(journal)]
    assert "notifications/cancelled" in told


@pytest.mark.parametrize("mode", ["dies_in_a_call", "floods", "long_line"])
async def test_one_that_fails_in_a_call_is_told_and_started_again(
    mode: str, bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted(mode, tmp_path / "journal"))
    await bench.prepare()
    settled = await bench.call("it_say", text="x")
    assert isinstance(settled, ToolError)
    assert settled.message.startswith("The MCP server it failed: it ")
    first = heard(tmp_path / "journal")[0]["pid"]
    await until(lambda: not is_running(first))
    await bench.until("it", "connected")


async def test_a_flood_of_messages_stops_neither_the_call_nor_the_program(
    bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted("chatters", tmp_path / "journal"))
    await bench.prepare()
    async with asyncio.timeout(20):
        settled = await bench.call("it_say", text="x")
    assert isinstance(settled, ToolSuccess | ToolError)


async def test_lines_that_are_no_messages_do_no_harm(bench: McpBench, tmp_path: Path) -> None:
    bench.configure(it=scripted("noisy", tmp_path / "journal"))
    assert "it_say" in await bench.prepare()
    settled = await bench.call("it_say", text="x")
    assert settled == ToolSuccess({"said": "x"}, (TextContent(text="said x"),))


async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(
    bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted("unreadable", tmp_path / "journal"))
    await bench.prepare()
    settled = await bench.call("it_say", text="x")
    assert settled == ToolError("The MCP server it failed: the server's answer cannot be read")
    assert bench.info("it").status == "connected"


async def test_ten_thousand_tools_are_bounded_and_found_by_search(
    bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted("many", tmp_path / "journal"))
    await bench.prepare()
    info = bench.info("it")
    assert len(info.tools) == limits.MCP_TOOLS_MAX
    assert len(info.problems) <= limits.MCP_PROBLEMS_MAX + 1
    found = await bench.call("mcp_search", query="tool 00042", limit=3)
    assert isinstance(found, ToolSuccess)
    names = [tool["name"] for tool in found.structured["tools"]]
    assert names[0] == "it_tool_00042"
    called = await bench.call("mcp_call", name="it_tool_00042", arguments={"text": "x"})
    assert called == ToolSuccess({"said": "x"}, (TextContent(text="said x"),))
    assert [ask.action for ask in bench.asked] == ["mcp_search", "it_tool_00042"]


async def test_pages_without_end_are_read_to_a_bound(bench: McpBench, tmp_path: Path) -> None:
    bench.configure(it=scripted("endless_pages", tmp_path / "journal"))
    await bench.prepare()
    assert len(bench.info("it").tools) == limits.MCP_PAGES_MAX


async def test_hostile_names_and_schemas_are_left_out_alone(
    bench: McpBench, tmp_path: Path
) -> None:
    bench.configure(it=scripted("hostile", tmp_path / "journal"))
    offered = await bench.prepare()
    own = [name for name in offered if name.startswith("it_")]
    assert {"it_good", "it_listed", "it_pattern", "it_remote", "it_described"} <= set(own)
    assert "it_deep" not in own
    assert "it_huge" not in own
    # Two names that become the same are refused, both of them.
    assert "it_a_b" not in own
    assert all(name.isascii() and name.isprintable() and len(name) <= 64 for name in own)
    listed = await bench.tools.current()
    assert all(len(tool.description) < 20_000 for tool in listed.values())
    # A pattern of an output schema is not applied: it could take for ever.
    async with asyncio.timeout(10):
        settled = await bench.call("it_pattern", text="a" * 40 + "!")
    assert isinstance(settled, ToolSuccess)
    assert isinstance(await bench.call("it_remote", text="x"), ToolSuccess)


async def test_what_a_server_has_started_ends_with_it(bench: McpBench, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    bench.configure(it=scripted("helper", journal))
    await bench.prepare()
    notes = heard(journal)
    pids = [notes[0]["pid"], notes[1]["helper"]]
    assert all(map(is_running, pids))
    await bench.aclose()
    await until(lambda: not any(map(is_running, pids)))


async def test_a_call_waits_for_a_server_that_still_starts(bench: McpBench, tmp_path: Path) -> None:
    bench.configure(it=scripted("starts_slowly", tmp_path / "journal"))
    await bench.prepare()
    async with mcp_bench(tmp_path, bench.lists) as again:
        again.configure(it=scripted("starts_slowly", tmp_path / "journal"))
        # Known from the last time: offered at once.
        assert "it_say" in await again.prepare()
        assert again.info("it").status == "starting"
        settled = await again.call("it_say", text="x")
    assert settled == ToolSuccess({"said": "x"}, (TextContent(text="said x"),))


async def test_a_killed_server_in_mid_call_is_told_and_leaves_no_process(
    bench: McpBench, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    bench.configure(it=scripted("hangs_in_a_call", journal))
    await bench.prepare()
    call = asyncio.create_task(bench.call("it_say", text="x"))
    await until(lambda: any(note.get("method") == "tools/call" for note in heard(journal)))
    os.kill(heard(journal)[0]["pid"], 9)
    settled = await call
    assert isinstance(settled, ToolError)
    assert settled.message.startswith("The MCP server it failed: it ended by itself")
