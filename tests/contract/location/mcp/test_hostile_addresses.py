"""MCP servers over HTTP that do not behave: each has its reason, and none harms the others."""

import asyncio
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import TextContent
from perdure.tools.api.registry import ToolError, ToolSuccess
from tests.support.mcp.hostile_address import HostileAddress, hostile_address
from tests.support.mcp.mcp_bench import mcp_bench

SECRET = "a-secret-of-the-user"


def entry(server: HostileAddress) -> JsonObject:
    return {"type": "remote", "url": server.url, "headers": {"X-Key": SECRET}}


@pytest.mark.parametrize(
    ("mode", "status", "told"),
    [
        ("html", "failed", "text/html"),
        ("login", "needs_auth", "wants a login"),
        ("broken", "failed", "error response"),
        ("garbage", "failed", ""),
        ("old", "failed", "1999-01-01"),
    ],
)
async def test_what_is_no_server_has_a_reason(
    mode: str, status: str, told: str, tmp_path: Path
) -> None:
    async with hostile_address(mode) as server, mcp_bench(tmp_path) as bench:
        bench.configure(far=entry(server))
        await bench.prepare()
        info = bench.info("far")
        assert (info.status, info.tools) == (status, ())
        assert isinstance(info.error, str)
        assert told in info.error
        assert SECRET not in info.error


async def test_a_redirect_takes_no_secret_to_another_address(tmp_path: Path) -> None:
    async with (
        hostile_address("redirect") as server,
        hostile_address("sound") as another,
        mcp_bench(tmp_path) as bench,
    ):
        server.elsewhere = another.url
        bench.configure(far=entry(server))
        await bench.prepare()
        assert bench.info("far").status == "failed"
        assert another.heard == []


async def test_a_session_that_the_server_forgot_is_begun_anew(tmp_path: Path) -> None:
    async with hostile_address("expires") as server, mcp_bench(tmp_path) as bench:
        bench.configure(far=entry(server))
        assert "far_say" in await bench.prepare()
        assert isinstance(await bench.call("far_say"), ToolError)
        await bench.until("far", "starting")
        async with asyncio.timeout(20):
            assert await bench.call("far_say") == ToolSuccess({}, (TextContent(text="ok"),))
        assert server.sessions == 2


async def test_hostile_schemas_and_names_are_left_out_or_harmless(tmp_path: Path) -> None:
    async with (
        hostile_address("loops") as loops,
        hostile_address("heavy") as heavy,
        hostile_address("names") as names,
        mcp_bench(tmp_path) as bench,
    ):
        bench.configure(loops=entry(loops), heavy=entry(heavy), names=entry(names))
        offered = await bench.prepare()
        assert not any(name.startswith("heavy_") for name in offered)
        assert bench.info("heavy").problems or bench.info("heavy").error
        # A schema that refers to itself is passed on as it is: nothing here follows it.
        assert isinstance(await bench.call("loops_say"), ToolSuccess)
        assert all(name.isascii() for name in offered)
        # With a Cyrillic letter it has another name, never that of the first.
        assert isinstance(await bench.call("names_say"), ToolSuccess)
