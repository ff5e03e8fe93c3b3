"""What becomes of a call that a crash cut: its tool's effect class decides, and the model is told.

A process is dead here when its database took nothing more from one commit on and its lock is gone.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core.session import recovery
from perdure.host.process_locks import ProcessLocks
from perdure.schema.codec import Record
from perdure.schema.errors import SessionBusyError
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from perdure.testing.scripted_model import text, tool_call
from perdure.tools.api.tool import Tool, ToolCallContext, ToolEffect
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged
from tests.harness.faults.database import DatabaseFault, DatabasePlan
from tests.requirements import requirement

SESSION = SessionID("ses_cut")


class Nothing(Record):
    pass


class Effects:
    """A tool that counts its executions and stays in the first one for ever."""

    def __init__(self, effect: ToolEffect) -> None:
        self.begun = 0
        self.reached = asyncio.Event()
        self.tool = Tool(
            name="act",
            description="Act.",
            input=Nothing,
            output=Nothing,
            execute=self._execute,
            effect=effect,
        )

    async def _execute(self, _: Nothing, context: ToolCallContext) -> Nothing:
        self.begun += 1
        self.reached.set()
        if self.begun == 1:
            await asyncio.get_running_loop().create_future()
        return Nothing()


@asynccontextmanager
async def life(root: Path, name: str) -> AsyncGenerator[Stage]:
    with ProcessLocks(str(root / "processes"), f"prc_{name}") as locks:
        async with staged(root, processes=locks) as stage:
            yield stage


def die(stage: Stage) -> None:
    """Nothing reaches the disk any more, not even that the lease is given back."""
    lost = DatabaseFault(fails="before")
    stage.database.plan = DatabasePlan(writes=lambda _: lost, reads=lambda _: lost)


async def begin(stage: Stage, root: Path) -> None:
    workplace = root / "workplace"
    workplace.mkdir()
    location = LocationRef(directory=str(workplace))
    await stage.runtime.sessions.create(id=SESSION, model=MODEL, location=location)
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="act"))


async def cut_in(tmp_path: Path, acts: Effects) -> None:
    async with life(tmp_path, "dead") as stage:
        with stage.runtime.tools.register(acts.tool):
            stage.model.turn(tool_call("act", {}))
            await begin(stage, tmp_path)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await acts.reached.wait()
            die(stage)


async def resumed(stage: Stage) -> list[events.SessionEvent]:
    await stage.runtime.changes.resume(SESSION)
    return await stage.at_rest(SESSION)


@requirement("S70", "S189")
@pytest.mark.parametrize("effect", ["pure", "idempotent", "reconcilable", "once"])
async def test_only_a_call_that_may_be_run_twice_is_run_again(
    tmp_path: Path, effect: ToolEffect
) -> None:
    acts = Effects(effect)
    await cut_in(tmp_path, acts)
    async with life(tmp_path, "next") as stage:
        stage.model.turn(text("done"))
        with stage.runtime.tools.register(acts.tool):
            log = await resumed(stage)
    again = effect in ("pure", "idempotent")
    assert acts.begun == (2 if again else 1)
    outcomes = [e for e in log if isinstance(e, events.ToolSucceeded | events.ToolFailed)]
    assert len(outcomes) == 1
    if isinstance(outcomes[0], events.ToolFailed):
        assert not again
        assert outcomes[0].error.message.startswith(recovery.OUTCOME_UNKNOWN)
    ends = [e.finish for e in log if isinstance(e, events.StepEnded)]
    assert ends == ["tool-calls", "stop"]


@requirement("S189")
@pytest.mark.parametrize("applied", [True, False])
async def test_the_model_is_told_what_the_journal_knows_of_a_cut_edit(
    tmp_path: Path, *, applied: bool
) -> None:
    target = tmp_path / "workplace" / "notes.txt"
    dead = asyncio.Event()
    async with life(tmp_path, "dead") as stage:
        stage.model.turn(tool_call("write", {"path": "notes.txt", "content": "new\n"}))

        def writes(_: int) -> DatabaseFault | None:
            # The first commit after the change is the settlement of the call.
            if not target.exists():
                return None
            dead.set()
            return DatabaseFault(fails="before")

        stage.database.plan = DatabasePlan(writes=writes)
        await begin(stage, tmp_path)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await dead.wait()
        die(stage)
    if not applied:
        target.unlink()
    async with life(tmp_path, "next") as stage:
        stage.model.turn(text("done"))
        log = await resumed(stage)
    (failed,) = [e for e in log if isinstance(e, events.ToolFailed)]
    assert failed.error.message.startswith(recovery.OUTCOME_UNKNOWN)
    said = "applied" if applied else "not applied"
    assert failed.error.message.endswith(f"notes.txt: {said}")


@requirement("S70")
async def test_a_session_that_a_dead_process_left_in_a_run_is_not_idle(tmp_path: Path) -> None:
    """Nobody has looked for work yet when a client waits."""
    acts = Effects("once")
    await cut_in(tmp_path, acts)
    async with life(tmp_path, "next") as stage:
        stage.model.turn(text("done"))
        log = await stage.at_rest(SESSION)
    ends = [e.finish for e in log if isinstance(e, events.StepEnded)]
    assert ends == ["tool-calls", "stop"]


@requirement("S70", "S189")
async def test_a_cut_step_is_settled_without_its_directory_and_the_run_goes_on_with_it(
    tmp_path: Path,
) -> None:
    acts = Effects("pure")
    await cut_in(tmp_path, acts)
    away = (tmp_path / "workplace").rename(tmp_path / "away")
    async with life(tmp_path, "next") as stage:
        log = await stage.at_rest(SESSION)
        assert isinstance(log[-2], events.ToolFailed)
        assert log[-2].error.message.startswith(recovery.OUTCOME_UNKNOWN)
        assert isinstance(log[-1], events.StepFailed)
        away.rename(tmp_path / "workplace")
        stage.model.turn(text("done"))
        await stage.runtime.changes.resume(SESSION)
        log = await stage.at_rest(SESSION)
    assert acts.begun == 1
    assert isinstance(log[-1], events.StepEnded)


@requirement("S70")
async def test_a_session_whose_run_was_cut_is_busy_until_the_run_has_gone_on(
    tmp_path: Path,
) -> None:
    acts = Effects("once")
    await cut_in(tmp_path, acts)
    async with life(tmp_path, "next") as stage:
        log = await stage.log(SESSION)
        prompt = next(e for e in log if isinstance(e, events.PromptPromoted)).message_id
        sessions, elsewhere = stage.runtime.sessions, LocationRef(directory=str(tmp_path))
        with pytest.raises(SessionBusyError):
            await sessions.revert.stage(SESSION, prompt)
        with pytest.raises(SessionBusyError):
            await sessions.move(SESSION, elsewhere)
        stage.model.turn(text("done")).turn(text("a summary"))
        await sessions.compact(SESSION)
        await stage.at_rest(SESSION)
        await sessions.revert.stage(SESSION, prompt)
