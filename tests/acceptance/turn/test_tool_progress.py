"""How far a tool is: seen while it runs, recorded now and then, and never after its result."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import cast

from perdure import ToolCallContext, tool
from perdure.client.generated.types import ModelRef
from perdure.core import limits
from perdure.embedded.host import WireHost, open_wire_host
from perdure.schema.codec import JsonObject
from perdure.testing import ScriptedModel, tool_call
from perdure.testing import text as says
from tests.requirements import requirement

PATIENCE_SECONDS = 10
MODEL: ModelRef = {"providerID": "scripted", "id": "one"}


async def history(perdure: WireHost, session_id: str) -> list[JsonObject]:
    return cast(
        "list[JsonObject]", [*(await perdure.sessions.history(session_id, limit=100)).items]
    )


async def first_progress(perdure: WireHost, session_id: str) -> JsonObject:
    """Wait until the tool is heard of."""
    async with aclosing(perdure.sessions.events(session_id)) as events:
        async for event in events:
            if event["type"] == "session.next.tool.progress":
                return cast("JsonObject", event)
    raise AssertionError("the stream ended")


def facts(events: list[JsonObject]) -> list[str]:
    return [event["type"].removeprefix("session.next.") for event in events]


@requirement("S167")
async def test_progress_is_shown_while_the_tool_runs_and_the_result_is_the_last_word(
    tmp_path: Path,
) -> None:
    go_on = asyncio.Event()

    @tool
    async def build(context: ToolCallContext) -> str:
        """Build it."""
        for number in range(1_000):
            context.progress(f"{number} files", structured={"done": number})
        await go_on.wait()
        context.progress("nearly")
        return "built"

    model = ScriptedModel()
    model.turn(tool_call("build", {}, id="call_1")).turn(says("done"))
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_wire_host(
            str(tmp_path), data_dir=str(tmp_path / "data"), models={"scripted/one": model}
        ) as perdure,
    ):
        with perdure.tools.register(build):
            session_id = (await perdure.sessions.create(model=MODEL))["id"]
            await perdure.sessions.prompt(session_id, text="build")
            event = await first_progress(perdure, session_id)
            page = await perdure.sessions.messages(session_id, limit=1)
            state = cast("JsonObject", page.items[0])["content"][0]["state"]
            go_on.set()
            await perdure.sessions.wait(session_id)
            events = await history(perdure, session_id)
    assert event["data"]["callID"] == "call_1"
    assert (state["status"], state["structured"]) == ("running", {"done": 999})
    assert state["content"] == [{"type": "text", "text": "999 files"}]
    told = facts(events)
    assert told.count("tool.progress") == 1
    assert told.index("tool.called") < told.index("tool.progress") < told.index("tool.success")


async def test_progress_that_is_not_json_fails_the_call_and_not_the_turn(tmp_path: Path) -> None:
    @tool
    async def build(context: ToolCallContext) -> str:
        """Build it."""
        context.progress(structured={"what": object()})
        return "never"

    model = ScriptedModel()
    model.turn(tool_call("build", {})).turn(says("I see"))
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_wire_host(
            str(tmp_path), data_dir=str(tmp_path / "data"), models={"scripted/one": model}
        ) as perdure,
    ):
        with perdure.tools.register(build):
            session_id = (await perdure.sessions.create(model=MODEL))["id"]
            await perdure.sessions.prompt(session_id, text="build")
            await perdure.sessions.wait(session_id)
            told = facts(await history(perdure, session_id))
    assert (told.count("tool.failed"), told.count("tool.progress")) == (1, 0)
    assert told[-1] == "step.ended"


async def test_an_interrupt_while_progress_is_told_leaves_one_settlement(tmp_path: Path) -> None:
    @tool
    async def build(context: ToolCallContext) -> str:
        """Build it."""
        while True:
            context.progress("x" * 3 * limits.TOOL_PROGRESS_BYTES_MAX)
            await asyncio.sleep(0)

    model = ScriptedModel()
    model.turn(tool_call("build", {}))
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_wire_host(
            str(tmp_path), data_dir=str(tmp_path / "data"), models={"scripted/one": model}
        ) as perdure,
    ):
        with perdure.tools.register(build):
            session_id = (await perdure.sessions.create(model=MODEL))["id"]
            await perdure.sessions.prompt(session_id, text="build")
            event = await first_progress(perdure, session_id)
            await perdure.sessions.interrupt(session_id)
            told = facts(await history(perdure, session_id))
    (part,) = event["data"]["content"]
    assert 0 < len(part["text"]) < limits.TOOL_PROGRESS_BYTES_MAX
    assert told[-2:] == ["tool.failed", "step.ended"]
    assert told.count("tool.failed") == 1
