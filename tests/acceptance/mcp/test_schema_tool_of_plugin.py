"""A tool with a JSON Schema that a plugin registers: asked for, bounded, and followed."""

import asyncio
from pathlib import Path

from perdure import PluginHost, SchemaTool, SchemaToolResult, ToolCallContext
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import TextContent
from tests.acceptance.mcp.mcp_project import offered, results
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}
LONG = "warm " * 50_000


class Weather:
    name = "weather"

    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def setup(self, host: PluginHost) -> None:
        async def look(given: JsonObject, context: ToolCallContext) -> SchemaToolResult:
            context.progress(f"looks at {given['city']}")
            await self.seen.wait()
            return SchemaToolResult(content=(TextContent(text=LONG),))

        tool = SchemaTool(name="weather", description="Tell it.", schema=SCHEMA, execute=look)
        host.schema_tool(tool)


async def test_it_is_asked_for_bounded_and_tells_its_progress(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    folders.configure_user(permission={"weather": "ask"})
    async with running(folders) as instance:
        api = instance.api
        weather = Weather()
        instance.runtime.plugins.add(weather)
        session = await api.create()
        provider.then(calls(Call("weather", {"city": "Bonn"})), text("done"))
        async with api.stream("/api/event") as live:
            await api.prompt(session, "how warm is it")
            request = (await live.until("permission.v2.asked"))[-1]["data"]
            assert (request["action"], request["metadata"]["input"]) == (
                "weather",
                {"city": "Bonn"},
            )
            reply: JsonObject = {"reply": "once"}
            await api.post(f"/api/session/{session}/permission/{request['id']}/reply", reply)
            progress = (await live.until("session.next.tool.progress"))[-1]
            weather.seen.set()
        await api.wait(session)
    assert "looks at Bonn" in str(progress)
    assert "weather" in offered(provider.requests[0])
    (told,) = results(provider.requests[-1])
    assert told.startswith("warm warm")
    assert len(told) < len(LONG) / 2
