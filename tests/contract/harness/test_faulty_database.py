"""A runtime on a failing disk: told to fail means absent, or there exactly once; nothing hangs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.ports import DatabaseError, Transaction
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ManualClock, text, tool_call
from tests.contract.harness.faulty_runtime import MODEL, Stage, settlements, staged
from tests.harness.faults.database import (
    DatabaseFault,
    DatabasePlan,
    FaultyDatabase,
    InjectedDatabaseError,
    Moment,
)
from tests.requirements import requirement

MOMENTS: tuple[Moment, ...] = ("before", "at-commit", "after-commit")
PROMPT = MessageID("msg_faulty")
SESSION = SessionID("ses_faulty")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[FaultyDatabase]:
    async with SqliteDatabase(str(tmp_path / "p.db")) as real:
        await real.write(lambda tx: tx.execute("CREATE TABLE item (name TEXT NOT NULL)"))
        yield FaultyDatabase(real, clock=ManualClock())


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(tmp_path) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=MODEL)
        yield stage


@pytest.fixture(autouse=True)
def failures_are_expected(caplog: pytest.LogCaptureFixture) -> None:
    """Drains that fail are logged as errors; here they fail on purpose."""
    caplog.set_level(logging.CRITICAL, logger="perdure")


async def insert(tx: Transaction) -> int:
    return await tx.execute("INSERT INTO item (name) VALUES ('one')")


async def rows(database: FaultyDatabase) -> int:
    return len(await database.read(lambda tx: tx.fetch("SELECT name FROM item")))


def fails_next(
    stage: Stage, moment: Moment, *, after: int = 0, out_of_memory: bool = False
) -> None:
    number = stage.database.writes + 1 + after
    fault = DatabaseFault(fails=moment, out_of_memory=out_of_memory)
    stage.database.plan = DatabasePlan(writes={number: fault})


async def prompt(stage: Stage) -> None:
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="hello"), id=PROMPT)


@pytest.mark.parametrize(("moment", "kept"), [*zip(MOMENTS, (0, 0, 1), strict=True)])
async def test_a_write_that_was_told_to_fail_is_there_only_after_its_commit(
    database: FaultyDatabase, moment: Moment, kept: int
) -> None:
    told: list[int] = []
    database.plan = DatabasePlan(writes={2: DatabaseFault(fails=moment)})
    assert await database.write(insert, committed=told.append) == 1
    with pytest.raises(InjectedDatabaseError, match="on purpose"):
        await database.write(insert, committed=told.append)
    assert await rows(database) == 1 + kept
    assert await database.write(insert, committed=told.append) == 1
    assert (told, database.failed) == ([1, 1], 1)


async def test_the_own_failure_of_a_job_comes_before_the_planned_one(
    database: FaultyDatabase,
) -> None:
    async def broken(tx: Transaction) -> None:
        raise ValueError("its own")

    database.plan = DatabasePlan(writes=lambda number: DatabaseFault(fails="at-commit"))
    with pytest.raises(ValueError, match="its own"):
        await database.write(broken)


async def test_a_failing_write_takes_no_other_one_with_it(database: FaultyDatabase) -> None:
    database.plan = DatabasePlan(
        writes=lambda number: DatabaseFault(fails=MOMENTS[number % 3]) if number % 4 else None
    )
    outcomes = await asyncio.gather(
        *(database.write(insert) for _ in range(24)), return_exceptions=True
    )
    succeeded = sum(outcome == 1 for outcome in outcomes)
    ambiguous = sum(number % 4 != 0 and number % 3 == 2 for number in range(1, 25))
    assert (succeeded, database.failed) == (6, 18)
    assert await rows(database) == succeeded + ambiguous


async def test_a_read_fails_and_the_next_one_does_not(database: FaultyDatabase) -> None:
    database.plan = DatabasePlan(reads={1: DatabaseFault(fails="before")})
    with pytest.raises(DatabaseError):
        await rows(database)
    assert await rows(database) == 0


async def test_an_operation_is_late_by_the_clock_it_was_given(tmp_path: Path) -> None:
    clock = ManualClock()
    async with SqliteDatabase(str(tmp_path / "p.db")) as real, asyncio.TaskGroup() as group:
        late = DatabaseFault(delay_seconds=30)
        plan = DatabasePlan(writes={1: late}, reads={1: late})
        database = FaultyDatabase(real, plan, clock=clock)
        writing = group.create_task(database.write(lambda tx: tx.execute("CREATE TABLE late (a)")))
        await clock.until_sleeps(1)
        assert await real.read(lambda tx: tx.fetch("SELECT name FROM sqlite_master")) == []
        clock.advance(30)
        await writing
        reading = group.create_task(database.read(lambda tx: tx.fetch("SELECT * FROM late")))
        await clock.until_sleeps(2)
        assert not reading.done()
        clock.advance(30)
        assert await reading == []


@requirement("S74", "S76")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_prompt_whose_admission_failed_is_absent_or_there_once(
    stage: Stage, moment: Moment
) -> None:
    fails_next(stage, moment)
    with pytest.raises(DatabaseError):
        await prompt(stage)
    stage.model.turn(text("hello yourself"))
    await prompt(stage)
    await prompt(stage)
    log = await stage.at_rest(SESSION)
    assert sum(isinstance(event, events.PromptAdmitted) for event in log) == 1
    assert sum(isinstance(event, events.PromptPromoted) for event in log) == 1
    assert settlements(log) == (1, 1)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("out_of_memory", [False, True])
async def test_wherever_a_turn_loses_a_write_the_next_prompt_finds_everything_settled(
    tmp_path: Path, moment: Moment, *, out_of_memory: bool
) -> None:
    """Every write of a turn with a tool fails once, one run for each."""
    lost = -1
    while await loses_a_write(tmp_path, moment, lost := lost + 1, out_of_memory=out_of_memory):
        pass
    assert lost >= 4


async def loses_a_write(root: Path, moment: Moment, lost: int, *, out_of_memory: bool) -> bool:
    """Whether there was such a write at all."""
    async with staged(root / f"{lost}", seed=lost) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=MODEL)
        stage.model.turn(text("first I look"), tool_call("read", {"path": "gone.txt"}))
        stage.model.turn(text("nothing there"))
        # The admission itself is the subject of the test above.
        fails_next(stage, moment, after=1 + lost, out_of_memory=out_of_memory)
        await prompt(stage)
        begun, ended = settlements(await stage.at_rest(SESSION))
        assert begun == ended
        stage.database.plan = DatabasePlan()
        if stage.database.failed:
            await answers_another_prompt(stage)
        return stage.database.failed > 0


async def answers_another_prompt(stage: Stage) -> None:
    for _ in range(3):
        stage.model.turn(text("still here"))
    await stage.runtime.sessions.prompt(SESSION, PromptInput(text="and now?"))
    log = await stage.at_rest(SESSION)
    begun, ended = settlements(log)
    assert begun == ended, [type(event).__name__ for event in log]
    opened = {event.call_id for event in log if isinstance(event, events.ToolInputStarted)}
    settled = [e.call_id for e in log if isinstance(e, events.ToolSucceeded | events.ToolFailed)]
    assert sorted(opened) == sorted(settled)
    assert isinstance(log[-1], events.StepEnded)
    assert sum(isinstance(event, events.PromptPromoted) for event in log) == 2


async def test_a_failed_settlement_is_told_to_who_watches(stage: Stage) -> None:
    """The step cannot be recorded as ended; the run says so instead of going on."""
    stage.model.turn(text("lost"))
    with stage.runtime.hub.subscribe() as watching:
        await prompt(stage)
        stage.database.plan = DatabasePlan(writes=lambda _: DatabaseFault(fails="before"))
        await stage.at_rest(SESSION)
        stage.database.plan = DatabasePlan()
        seen = b""
        async with asyncio.timeout(10):
            while b'"failed"' not in seen:
                seen += await watching.next() or b""
    assert b"the disk failed on purpose" in seen


async def test_reads_that_fail_end_the_run_and_lose_nothing(stage: Stage) -> None:
    stage.model.turn(text("late but here"))
    stage.database.plan = DatabasePlan(reads=lambda number: DatabaseFault(fails="before"))
    with pytest.raises(DatabaseError):
        await stage.runtime.sessions.prompt(SESSION, PromptInput(text="hello"), id=PROMPT)
    stage.database.plan = DatabasePlan()
    await prompt(stage)
    assert settlements(await stage.at_rest(SESSION)) == (1, 1)


async def test_a_runtime_can_be_closed_while_nothing_can_be_written(tmp_path: Path) -> None:
    async with asyncio.timeout(10), staged(tmp_path) as stage:
        await stage.runtime.sessions.create(id=SESSION, model=MODEL)
        stage.database.plan = DatabasePlan(writes=lambda _: DatabaseFault(fails="before"))
    assert stage.database.failed > 0
    async with staged(tmp_path) as stage:
        stage.model.turn(text("back"))
        await prompt(stage)
        assert settlements(await stage.at_rest(SESSION)) == (1, 1)
