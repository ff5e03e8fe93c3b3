"""Settlement: once a tool has succeeded, an interrupt waits for the record."""

import asyncio
from pathlib import Path

import pytest

from perdure.core.tool_output import OutputLimits
from perdure.host.filesystem import LocalFilesystem
from perdure.ports import PermissionDeclinedError
from perdure.runtime.settlement import Settlement, Succeeded, Toolbox
from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session_event import ToolCalled
from perdure.schema.tool import CallProvider, TextContent
from perdure.testing import ManualClock, SeededIds
from perdure.tools.output_store import BoundedOutput, ToolOutputStore
from perdure.tools.registry import ToolError, ToolRegistry
from perdure.tools.tool import Tool, ToolCallContext
from tests.requirements import requirement


class Nothing(Record):
    pass


class Long(Record):
    text: str


class GatedFilesystem(LocalFilesystem):
    """The real one, held at the moment when a long output is about to be kept."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def create_exclusive(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        self.reached.set()
        await self.release.wait()
        await super().create_exclusive(path, data, mode=mode)


async def shout(input: Nothing, context: ToolCallContext) -> Long:
    return Long(text="line\n" * 5_000)


async def decline(input: Nothing, context: ToolCallContext) -> Long:
    raise PermissionDeclinedError


async def explode(input: Nothing, context: ToolCallContext) -> Long:
    raise RuntimeError("a defect of the tool")


def tool(name: str) -> Tool[Nothing, Long]:
    execute = {"shout": shout, "decline": decline, "explode": explode}[name]
    return Tool(
        name=name,
        description=name,
        input=Nothing,
        output=Long,
        execute=execute,
        to_model_output=lambda long: (TextContent(text=long.text),),
    )


def called(name: str) -> ToolCalled:
    return ToolCalled(
        timestamp=1,
        session_id=SessionID("ses_a"),
        assistant_message_id=MessageID("msg_a"),
        call_id=ToolCallID("call_0"),
        tool=name,
        input={},
        provider=CallProvider(executed=False),
    )


class Recorded:
    def __init__(self) -> None:
        self.outcomes: list[BoundedOutput | ToolError] = []

    async def record(self, call: ToolCalled, outcome: Succeeded | ToolError) -> None:
        await asyncio.sleep(0)
        self.outcomes.append(outcome if isinstance(outcome, ToolError) else outcome.output)


def settlement(registry: ToolRegistry, recorded: Recorded, store: ToolOutputStore) -> Settlement:
    toolbox = Toolbox(registry.materialize(()), store, OutputLimits(), lambda path: ())
    return Settlement(toolbox, "build", recorded.record)


def outputs(tmp_path: Path, filesystem: LocalFilesystem) -> ToolOutputStore:
    clock = ManualClock()
    return ToolOutputStore(
        str(tmp_path / "out"), filesystem=filesystem, ids=SeededIds(1), clock=clock
    )


@requirement("S102")
async def test_an_interrupt_during_bounding_still_records_one_bounded_success(
    tmp_path: Path,
) -> None:
    filesystem, recorded, registry = GatedFilesystem(), Recorded(), ToolRegistry()
    with registry.register(tool("shout")):
        settling = settlement(registry, recorded, outputs(tmp_path, filesystem))
        async with asyncio.timeout(5):
            task = asyncio.create_task(settling.settle(called("shout")))
            await filesystem.reached.wait()
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()
            filesystem.release.set()
            with pytest.raises(asyncio.CancelledError):
                await task
    (outcome,) = recorded.outcomes
    assert isinstance(outcome, BoundedOutput)
    assert len(outcome.output_paths) == 1
    assert Path(outcome.output_paths[0]).read_text() == "line\n" * 5_000
    assert sum(len(item.text) for item in outcome.content if isinstance(item, TextContent)) < 51_200


async def test_whatever_a_tool_raises_becomes_a_failure_that_the_model_sees(
    tmp_path: Path,
) -> None:
    recorded, registry = Recorded(), ToolRegistry()
    with registry.register(tool("explode")):
        settling = settlement(registry, recorded, outputs(tmp_path, LocalFilesystem()))
        await settling.settle(called("explode"))
    assert recorded.outcomes == [ToolError("Tool execution failed: a defect of the tool")]


async def test_a_declined_permission_records_nothing_and_stops_the_run(tmp_path: Path) -> None:
    recorded, registry = Recorded(), ToolRegistry()
    with registry.register(tool("decline")):
        settling = settlement(registry, recorded, outputs(tmp_path, LocalFilesystem()))
        await settling.settle(called("decline"))
        await settling.settle(called("decline"))
    assert settling.declined
    assert recorded.outcomes == []
