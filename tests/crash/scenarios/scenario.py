"""A scenario of its own for a crash sweep: prepare it, kill the process that runs it, check.

A scenario is run in a process that is killed at each of its points in turn. After each crash
another process continues with what is left and checks it. A scenario with processes of its own is
run in real time, and the process itself is killed each time, because its children must notice that.
Any other is run once in virtual time, and copies of it are killed; see `forked`. Of crashes that
leave the same files, byte by byte, one is checked; see `runs.crash_once`.
"""

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.host.clock import SystemClock
from perdure.host.process.detached import LocalDetached
from perdure.host.process_locks import ProcessLocks
from perdure.llm.model_call import ModelCall
from perdure.ports import Clock
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from tests.crash import process_run
from tests.crash.crash_site import contents, copied_in_place, new_root, new_site
from tests.harness.crash.forked import CrashingChild, Ended, kill_copies, run_forked
from tests.harness.crash.points import CrashPoint, CrashPoints, kill_at, read_lines
from tests.harness.crash.seams import CrashingDatabase, CrashingDetached, CrashingModel
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop

Phase = Callable[[Runtime, Path], Coroutine[None, None, None]]
OnPoint = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    prepare: Phase
    run: Phase
    """Is killed."""
    check: Phase
    """Continues with what is left, and raises AssertionError if it is not right."""
    model: ModelCall | None = None
    has_processes: bool = False


def sweep(scenario: Scenario, *, each: int = 1) -> int:
    """Kill the process at every n-th point, and print what is wrong; returns an exit code."""
    with new_site() as aside:
        process_run.warm_up(aside)
    with new_root() as root:
        root.mkdir()
        _expect_end(_run(scenario, root, scenario.prepare, process=0), "preparing")
        with copied_in_place(root):
            whole = _run(scenario, root, scenario.run, process=1)
        _expect_end(whole, "a run without a crash")
        points = read_lines(whole.output)
        died = points[::each]
        check = _Check(scenario, root)
        swept = _kill_processes if scenario.has_processes else _kill_copies
        faults = [*swept(scenario, root, died, check)]
    sys.stdout.writelines(f"{point.name}\n" for point in points)
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"checked {check.times} times\n")
    sys.stdout.write(f"{len(died)} crashes: {len(faults)} faults\n")
    return 1 if faults else 0


@dataclass(slots=True)
class _Check:
    scenario: Scenario
    root: Path
    times: int = 0

    def __call__(self, number: int) -> Iterator[str]:
        self.times += 1
        if _run(self.scenario, self.root, self.scenario.check, process=2).code != 0:
            yield f"point {number}: the next process printed above what is wrong"


def _kill_copies(
    scenario: Scenario, root: Path, died: tuple[CrashPoint, ...], check: _Check
) -> Iterator[str]:
    """Run one process, and kill a copy of it at each point."""

    def run(child: CrashingChild) -> None:
        _run_phase(scenario, root, scenario.run, 1, child.descriptor, child.reach)

    crashes = 0
    left: dict[str, bytes] = {}
    for number, ended in kill_copies(run, frozenset(point.number for point in died)):
        crashes += 1
        if not ended.killed or read_lines(ended.output)[-1] not in died:
            yield f"point {number}: it was not killed there"
        before, left = left, contents(root)
        if left != before:
            with copied_in_place(root):
                yield from check(number)
    if crashes != len(died):
        yield f"{crashes} crashes instead of {len(died)}"


def _kill_processes(
    scenario: Scenario, root: Path, died: tuple[CrashPoint, ...], check: _Check
) -> Iterator[str]:
    for point in died:
        with copied_in_place(root):
            # What happens when depends on the machine, so a late point may not be reached.
            ended = _run(scenario, root, scenario.run, process=1, on_point=kill_at(point.number))
            if not ended.killed:
                _expect_end(ended, f"a run that was to be killed at {point}")
            yield from check(point.number)


def _expect_end(ended: Ended, what: str) -> None:
    if ended.code != 0:
        raise SystemExit(f"{what} ended with {ended.code}")


# ---- one process --------------------------------------------------------------------------------


def _run(
    scenario: Scenario,
    root: Path,
    phase: Phase,
    *,
    process: int,
    on_point: OnPoint = lambda number: None,
) -> Ended:
    return run_forked(
        lambda descriptor: _run_phase(scenario, root, phase, process, descriptor, on_point)
    )


def _run_phase(
    scenario: Scenario, root: Path, phase: Phase, process: int, descriptor: int, on_point: OnPoint
) -> None:
    points = CrashPoints(descriptor, on_point=on_point)

    async def run(clock: Clock) -> None:
        resumes = scenario.model is not None and phase is not scenario.run
        async with _opened(scenario, root, process, clock, points, resumes=resumes) as runtime:
            await phase(runtime, root)

    if scenario.has_processes:
        asyncio.run(run(SystemClock()))
        return
    gc.disable()
    loop = VirtualLoop(Random(f"life {process}"))
    clock = VirtualClock(loop)
    clock.jump(process * 60)
    loop.run_until_complete(run(clock))
    assert loop.complaints == []


@asynccontextmanager
async def _opened(
    scenario: Scenario,
    root: Path,
    process: int,
    clock: Clock,
    points: CrashPoints,
    *,
    resumes: bool,
) -> AsyncGenerator[Runtime]:
    path = str(root / "perdure.db")
    migrate.migrate(path)
    ids = SeededIds(process, clock)
    models = {} if scenario.model is None else {"one": CrashingModel(scenario.model, points)}
    settings = RuntimeSettings(
        environment=environment.from_variables(
            {"HOME": str(root), "TMPDIR": str(root), "PERDURE_TRUSTED": "*"}
        ),
        data_dir=str(root),
        default_directory=str(root),
        providers=(host_provider("crash", models),),
        resumes="all" if resumes else "none",
    )
    async with AsyncExitStack() as stack:
        processes = stack.enter_context(ProcessLocks(str(root / "processes"), ids.named("prc")))
        database = await stack.enter_async_context(SqliteDatabase(path, inline=True))
        on = Platform(
            database=CrashingDatabase(database, points),
            processes=processes,
            clock=clock,
            ids=ids,
            detached=CrashingDetached(LocalDetached(), points),
        )
        yield await stack.enter_async_context(compose(settings, on, path))
