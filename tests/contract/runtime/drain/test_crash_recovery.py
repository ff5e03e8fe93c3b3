"""A recovery that is itself cut short: what a dead process promoted is answered, or still owed.

A process is dead here when its database took nothing more from one commit on and its lock is gone.
That is what a kill leaves; the moment is chosen by the commit, and nothing is drawn.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.host import log_context
from perdure.host.process_locks import ProcessLocks
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import PromptInput
from perdure.store.log.event_store import StoredEvent
from perdure.testing.scripted_model import pause, text, texts_of, tool_call
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged
from tests.harness.faults.database import DatabaseFault, DatabasePlan
from tests.requirements import requirement
from tests.support import polling

SESSION = SessionID("ses_recovered")
SAID = "are you there?"
HELD_SECONDS = 4_321.0
"""Of the manual clock: until it is advanced."""
OPERATIONS_MAX = 100
"""More than a recovery makes."""


@asynccontextmanager
async def life(root: Path, name: str, plan: DatabasePlan | None = None) -> AsyncGenerator[Stage]:
    with ProcessLocks(str(root / "processes"), f"prc_{name}") as locks:
        async with staged(root, processes=locks, plan=plan) as stage:
            yield stage


def workplace(root: Path) -> Path:
    return root / "workplace"


async def begin(stage: Stage, root: Path) -> None:
    workplace(root).mkdir()
    location = LocationRef(directory=str(workplace(root)))
    await stage.runtime.sessions.create(id=SESSION, model=MODEL, location=location)
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text=SAID))


def die(stage: Stage) -> None:
    """Nothing reaches the disk any more, not even that the lease is given back."""
    lost = DatabaseFault(fails="before")
    stage.database.plan = DatabasePlan(writes=lambda _: lost, reads=lambda _: lost)


async def died_at(root: Path, fact: type[SessionEvent]) -> None:
    """Of a process that died right after the commit of `fact`."""
    dead = asyncio.Event()
    async with life(root, "dead") as stage:

        def heard(_: SessionID, stored: tuple[StoredEvent, ...], __: LocationRef | None) -> None:
            if any(isinstance(one.event, fact) for one in stored):
                die(stage)
                dead.set()

        stage.runtime.store.listen(heard)
        stage.model.turn(tool_call("nothing", {}))
        await begin(stage, root)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await dead.wait()


async def died_before_its_request(root: Path) -> None:
    await died_at(root, events.PromptPromoted)


async def died_after_its_tools(root: Path) -> None:
    await died_at(root, events.StepEnded)


async def died_with_its_request_out(root: Path) -> None:
    async with life(root, "dead") as stage:
        silent = pause()
        stage.model.turn(silent)
        await begin(stage, root)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await silent.reached.wait()
        die(stage)


Death = Callable[[Path], Awaitable[None]]
DEATHS: tuple[Death, ...] = (
    died_before_its_request,
    died_with_its_request_out,
    died_after_its_tools,
)


def answers(log: list[SessionEvent]) -> list[SessionEvent]:
    """The ends of steps after which the model is not asked again."""
    ends = [event for event in log if isinstance(event, events.StepEnded | events.StepFailed)]
    return [e for e in ends if isinstance(e, events.StepFailed) or e.finish != "tool-calls"]


def only_answer(log: list[SessionEvent]) -> SessionEvent:
    found = answers(log)
    assert len(found) == 1, f"the prompt has {len(found)} answers"
    return found[0]


async def resumed(stage: Stage) -> list[SessionEvent]:
    """The log, after whatever was left has been gone on with. Nothing is forced."""
    await stage.runtime.changes.resume(SESSION)
    return await stage.at_rest(SESSION)


@requirement("S70")
@pytest.mark.parametrize("death", DEATHS)
async def test_a_prompt_is_answered_once_a_directory_that_was_gone_at_the_start_is_back(
    tmp_path: Path, death: Death
) -> None:
    await death(tmp_path)
    workplace(tmp_path).rename(tmp_path / "unmounted")
    async with life(tmp_path, "next") as stage:
        assert answers(await resumed(stage)) == []
        (tmp_path / "unmounted").rename(workplace(tmp_path))
        stage.model.turn(text("yes"))
        assert isinstance(only_answer(await resumed(stage)), events.StepEnded)
        (request,) = stage.model.requests
        assert SAID in texts_of(request)


@requirement("S70", "S139")
@pytest.mark.parametrize("death", [died_before_its_request, died_with_its_request_out])
async def test_whenever_a_recovery_is_interrupted_its_prompt_has_an_answer(
    tmp_path: Path, death: Death
) -> None:
    endings: list[str] = []
    for number in range(1, OPERATIONS_MAX):
        root = tmp_path / str(number)
        await death(root)
        ending = await interrupted_at(root, number)
        if ending is None:
            break
        endings.append(ending)
    # Before anything is done about it, and when all is done.
    assert list(dict.fromkeys(endings)) == [TURN_INTERRUPTED, "answered"]


async def interrupted_at(root: Path, number: int) -> str | None:
    """How a recovery ends that is interrupted at its n-th operation; None if it makes fewer."""
    hold = Hold(number)
    async with life(root, "next", DatabasePlan(reads=hold, writes=hold)) as stage:
        stage.model.turn(text("yes"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            if not await hold.reached:
                return None
            await interrupt(stage, hold.drain)
        answer = only_answer(await stage.log(SESSION))
        return answer.error.message if isinstance(answer, events.StepFailed) else "answered"


async def interrupt(stage: Stage, drain: asyncio.Task[object]) -> None:
    """Now. What an interrupt must not cut goes on only when it has come."""
    async with asyncio.TaskGroup() as group:
        group.create_task(stage.runtime.sessions.interrupt(SESSION))
        await polling.until(drain.cancelling)
        stage.clock.advance(HELD_SECONDS)


class Hold:
    """The n-th operation of a drain on the database: it waits for the clock."""

    def __init__(self, number: int) -> None:
        self.reached: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """False when the drain ended before."""
        self._number = number
        self._seen = 0

    def __call__(self, _: int) -> DatabaseFault | None:
        # Others read beside it: the look for processes, and this test.
        if log_context.SESSION.get() != SESSION or self.reached.done():
            return None
        if self._seen == 0:
            drain = asyncio.current_task()
            assert drain is not None
            self.drain = drain
            drain.add_done_callback(self._over)
        self._seen += 1
        if self._seen < self._number:
            return None
        self.reached.set_result(True)
        return DatabaseFault(delay_seconds=HELD_SECONDS)

    def _over(self, drain: object) -> None:
        if not self.reached.done():
            self.reached.set_result(False)
