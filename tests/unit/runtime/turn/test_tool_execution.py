"""Settlement: once a tool has succeeded, an interrupt waits for the record."""

import asyncio
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.request.tool_output import OutputLimits
from perdure.core.session.repeated_calls import RepeatedCallGuard
from perdure.host.files.filesystem import LocalFilesystem
from perdure.ports import PermissionBlockedError, PermissionDeclinedError
from perdure.runtime.tasks import Background
from perdure.runtime.turn.tool_execution import Succeeded, ToolExecutor, ToolRun
from perdure.runtime.turn.tool_progress import ToolProgress
from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.event import ToolCalled
from perdure.schema.session.tool import CallProvider, TextContent
from perdure.testing import ManualClock, SeededIds
from perdure.tools.api.output_store import BoundedOutput, ToolOutputStore
from perdure.tools.api.registry import ToolError, ToolRegistry
from perdure.tools.api.tool import Progress, Tool, ToolCallContext
from tests.contract.tools.tool_bench import RecordedDesk
from tests.requirements import requirement


class Nothing(Record):
    pass


class Number(Record):
    number: int


class Long(Record):
    text: str


class GatedFilesystem(LocalFilesystem):
    """The real one, held at the moment when a long output is about to be kept."""

    def __init__(self) -> None:
        super().__init__()
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

    def progress(self, call: ToolCalled) -> ToolProgress:
        async def unheard(progress: Progress) -> None:
            raise AssertionError("none of these tools reports")

        return ToolProgress(unheard, background=Background(), clock=ManualClock())


def settlement(
    registry: ToolRegistry,
    recorded: Recorded,
    store: ToolOutputStore,
    desk: RecordedDesk | None = None,
) -> ToolExecutor:
    tool_run = ToolRun(
        tools=registry.materialize(()),
        agent="build",
        outputs=store,
        limits=OutputLimits(),
        instructions_beside=lambda path: (),
        permissions=desk or RecordedDesk(),
        repeated_calls=RepeatedCallGuard(),
    )
    return ToolExecutor(tool_run, recorded.record, recorded.progress)


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


# ---- calls that bring nothing new ---------------------------------------------------------------


async def same(input: Nothing, context: ToolCallContext) -> Number:
    return Number(7)


SAME = Tool(name="same", description="always the same", input=Nothing, output=Number, execute=same)


async def repeated(tmp_path: Path, desk: RecordedDesk, times: int) -> tuple[ToolExecutor, Recorded]:
    """A tool that always returns the same, called that often."""
    recorded, registry = Recorded(), ToolRegistry()
    with registry.register(SAME):
        settling = settlement(registry, recorded, outputs(tmp_path, LocalFilesystem()), desk)
        for _ in range(times):
            await settling.settle(called("same"))
    return settling, recorded


async def test_a_repeated_call_is_nudged_and_then_needs_a_person(tmp_path: Path) -> None:
    desk = RecordedDesk()
    _, recorded = await repeated(tmp_path, desk, limits.CALLS_REPEATED_MAX + 1)
    *first, nudged, allowed = [texts(outcome) for outcome in recorded.outcomes]
    assert first == [[]] * (limits.CALLS_REPEATED_MAX - 1)
    # The result is still there, in the form in which the model saw it before.
    assert (nudged[0], "3 times" in nudged[1]) == ('{\n  "number": 7\n}', True)
    assert "4 times" in allowed[1]
    assert desk.questions() == [("doom_loop", ("same",))]
    (asked,) = desk.asked
    assert (asked.metadata, asked.save) == ({"tool": "same", "input": {}}, ("same",))
    assert asked.source is not None
    assert asked.source.call_id == "call_0"


async def test_a_rule_against_repeating_is_told_to_the_model_and_in_the_end_stops_the_run(
    tmp_path: Path,
) -> None:
    desk = RecordedDesk(answers={"doom_loop": PermissionBlockedError("A rule says no.")})
    settling, recorded = await repeated(tmp_path, desk, 50)
    refused = [item for item in recorded.outcomes if isinstance(item, ToolError)]
    assert len(recorded.outcomes) == limits.CALLS_REPEATED_MAX + limits.CALLS_REFUSED_MAX
    assert len(refused) == len(desk.asked) == limits.CALLS_REFUSED_MAX
    assert refused[0].message.endswith("the same result. A rule says no.")
    assert settling.declined


async def test_a_person_who_declines_a_repetition_stops_the_run(tmp_path: Path) -> None:
    desk = RecordedDesk(answers={"doom_loop": PermissionDeclinedError("no")})
    settling, recorded = await repeated(tmp_path, desk, 50)
    assert len(recorded.outcomes) == limits.CALLS_REPEATED_MAX
    assert (len(desk.asked), settling.declined) == (1, True)


async def test_failures_that_repeat_are_noticed_as_well(tmp_path: Path) -> None:
    desk, recorded, registry = RecordedDesk(), Recorded(), ToolRegistry()
    settling = settlement(registry, recorded, outputs(tmp_path, LocalFilesystem()), desk)
    for _ in range(limits.CALLS_REPEATED_MAX + 1):
        await settling.settle(called("nothing"))
    messages = [item.message for item in recorded.outcomes if isinstance(item, ToolError)]
    assert messages[0] == "Unknown tool: nothing"
    assert messages[2].startswith("Unknown tool: nothing\n\n[This call has now been made 3 times")
    assert desk.questions() == [("doom_loop", ("nothing",))]


def texts(outcome: BoundedOutput | ToolError) -> list[str]:
    assert isinstance(outcome, BoundedOutput)
    return [part.text for part in outcome.content if isinstance(part, TextContent)]
