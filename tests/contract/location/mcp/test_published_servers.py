"""Published MCP servers, of both eras of the protocol: listed, called, failing, asking."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.location.mcp import resources
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.api.registry import Settled, ToolError, ToolSuccess
from perdure.tools.api.tool import ToolFailure
from tests.support import node
from tests.support.mcp.mcp_bench import McpBench, mcp_bench
from tests.support.mcp.real_servers import npm_command, npm_server, python_server
from tests.support.polling import until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[McpBench]:
    async with mcp_bench(tmp_path) as opened:
        yield opened


def text_of(settled: Settled) -> str:
    assert isinstance(settled, ToolSuccess), settled
    return "".join(part.text for part in settled.content if isinstance(part, TextContent))


async def test_everything_over_stdio(bench: McpBench) -> None:
    bench.configure(everything=await npm_server("server-everything", "stdio"))
    offered = await bench.prepare()
    assert "everything_echo" in offered
    assert "everything_get-tiny-image" in offered
    assert text_of(await bench.call("everything_echo", message="hello")) == "Echo: hello"
    summed = await bench.call("everything_get-sum", a=2, b=3)
    assert "5" in text_of(summed)
    image = await bench.call("everything_get-tiny-image")
    assert isinstance(image, ToolSuccess)
    assert any(isinstance(part, FileContent) for part in image.content)
    wrong = await bench.call("everything_get-sum", a="x")
    assert isinstance(wrong, ToolError)
    assert "a" in wrong.message
    structured = await bench.call("everything_get-structured-content", location="New York")
    assert isinstance(structured, ToolSuccess)
    assert "temperature" in structured.structured
    slow = await bench.call("everything_trigger-long-running-operation", duration=1, steps=4)
    assert "completed" in text_of(slow)
    assert len(bench.reports) >= 3


async def test_everything_sees_the_roots_and_asks_a_person(bench: McpBench) -> None:
    bench.configure(everything=await npm_server("server-everything", "stdio"))
    await bench.prepare()
    # It lists tools that depend on what the client can do after the connection is made.
    async with asyncio.timeout(10):
        while "everything_trigger-elicitation-request" not in await bench.tools.current():
            bench.changes.clear()
            await bench.changes.wait()
    assert "everything_trigger-sampling-request" not in await bench.tools.current()
    roots = text_of(await bench.call("everything_get-roots-list"))
    assert bench.directory.name in roots
    declined = await bench.call("everything_trigger-elicitation-request")
    assert isinstance(declined, ToolSuccess)
    assert len(bench.person.asked) == 1


async def test_filesystem_stays_in_its_directory(bench: McpBench, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("inside")
    bench.configure(files=await npm_server("server-filesystem", str(tmp_path)))
    assert "files_read_text_file" in await bench.prepare()
    read = await bench.call("files_read_text_file", path=str(tmp_path / "a.txt"))
    assert text_of(read) == "inside"
    outside = await bench.call("files_read_text_file", path="/etc/passwd")
    assert isinstance(outside, ToolError)


async def test_git_and_time_of_the_newer_era(bench: McpBench, tmp_path: Path) -> None:
    code, output = await node.run("git", "init", "-q", str(tmp_path / "repository"))
    assert code == 0, output
    bench.configure(
        git=python_server("mcp-server-git"),
        clock=python_server("mcp-server-time", "--local-timezone", "Europe/Paris"),
    )
    offered = await bench.prepare()
    assert {"git_git_status", "clock_get_current_time"} <= set(offered)
    status = await bench.call("git_git_status", repo_path=str(tmp_path / "repository"))
    assert "No commits yet" in text_of(status)
    assert "Europe/Oslo" in text_of(
        await bench.call("clock_get_current_time", timezone="Europe/Oslo")
    )
    failed = await bench.call("clock_get_current_time", timezone="Mars")
    assert isinstance(failed, ToolError)
    assert "Mars" in failed.message
    # Nothing was asked of a person but the permissions.
    assert [ask.action for ask in bench.asked] == [
        "git_git_status",
        "clock_get_current_time",
        "clock_get_current_time",
    ]


async def test_a_restart_keeps_the_tools(bench: McpBench) -> None:
    bench.configure(clock=python_server("mcp-server-time"))
    before = await bench.prepare()
    assert bench.servers.restart("clock")
    assert await bench.prepare() == before
    await bench.until("clock", "connected")
    assert isinstance(
        await bench.call("clock_get_current_time", timezone="Europe/Paris"), ToolSuccess
    )


@asynccontextmanager
async def everything_over_http() -> AsyncGenerator[tuple[str, asyncio.subprocess.Process]]:
    """The address of the server, and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *await npm_command("server-everything"),
        "streamableHttp",
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}/mcp", process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_everything_over_http(bench: McpBench) -> None:
    async with everything_over_http() as (url, process):
        bench.configure(everything={"type": "remote", "url": url, "oauth": False})
        assert "everything_echo" in await bench.prepare()
        assert bench.info("everything").type == "remote"
        assert text_of(await bench.call("everything_echo", message="hello")) == "Echo: hello"
        slow = await bench.call("everything_trigger-long-running-operation", duration=1, steps=3)
        assert "completed" in text_of(slow)
        assert len(bench.reports) >= 2
        process.kill()
        await process.wait()
        failed = await bench.call("everything_echo", message="hello")
        assert isinstance(failed, ToolError)
        info = await bench.until("everything", "failed")
        assert info.error
        # The tools stay: a call says why it fails.
        assert "everything_echo" in await bench.tools.current()


async def test_an_address_where_nothing_listens_fails_in_words(bench: McpBench) -> None:
    bench.configure(nothing={"type": "remote", "url": "http://127.0.0.1:9/mcp"})
    assert await bench.prepare() == []
    assert bench.info("nothing").status == "failed"
    assert "connect" in str(bench.info("nothing").error).lower()


async def test_resources_and_prompts_of_everything(bench: McpBench) -> None:
    bench.configure(everything=await npm_server("server-everything", "stdio"))
    assert "mcp_read_resource" in await bench.prepare()
    listed = await bench.call("mcp_read_resource", server="everything")
    assert isinstance(listed, ToolSuccess)
    uri = listed.structured["resources"][0]["uri"]
    read = await bench.call("mcp_read_resource", server="everything", uri=uri)
    assert uri in text_of(read)
    attached = await resources.read_attached(bench.servers, f"mcp://everything/{uri}")
    assert isinstance(read, ToolSuccess)
    assert attached == read.content
    missing = await bench.call("mcp_read_resource", server="everything", uri="demo://nothing")
    assert isinstance(missing, ToolError)
    for wrong in ("mcp://nothing/x", "mcp://everything", "mcp://"):
        with pytest.raises(ToolFailure):
            await resources.read_attached(bench.servers, wrong)
    commands = {command.name: command for command in await bench.tools.list_commands()}
    assert "everything:simple-prompt" in commands
    assert commands["everything:simple-prompt"].template
    with_arguments = [command for command in commands.values() if "$1" in command.template]
    assert with_arguments
