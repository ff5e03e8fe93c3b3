"""A bare stage, for what is swept apart from the conversation: furnish it, die in the act, look.

A play is acted in a process that is killed at each of its points in turn. After each death another
process goes on with what is left and looks whether it is right. A play that starts processes of its
own is acted in real time and dies for real each time: what is connected to a process that dies must
feel it. Any other is acted once in virtual time, and copies of it die; see `forked`. Of deaths that
leave the same files, byte by byte, one is looked at; see `runs.crash_once`.
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
from tests.crash.crash_site import contents, in_its_place, new_root, new_site
from tests.harness.crash.forked import Ended, Mortal, dying, run_forked
from tests.harness.crash.points import CrashPoint, CrashPoints, death_at, read_lines
from tests.harness.crash.seams import CrashingDatabase, CrashingDetached, CrashingModel
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop

Scene = Callable[[Runtime, Path], Coroutine[None, None, None]]
Fate = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Play:
    furnish: Scene
    act: Scene
    """What is killed."""
    look: Scene
    """Goes on with what is left, and raises AssertionError if it is not right."""
    model: ModelCall | None = None
    has_processes: bool = False


def sweep(play: Play, *, each: int = 1) -> int:
    """Die at every so many-th point, and say what is wrong: an exit code."""
    with new_site() as aside:
        process_run.rehearse(aside)
    with new_root() as root:
        root.mkdir()
        _expect_end(_run(play, root, play.furnish, life=0), "furnishing")
        with in_its_place(root):
            whole = _run(play, root, play.act, life=1)
        _expect_end(whole, "a play that is left alone")
        points = read_lines(whole.said)
        died = points[::each]
        look = _Look(play, root)
        swept = _apart if play.has_processes else _together
        faults = [*swept(play, root, died, look)]
    sys.stdout.writelines(f"{point.name}\n" for point in points)
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"looked {look.times} times\n")
    sys.stdout.write(f"{len(died)} deaths: {len(faults)} faults\n")
    return 1 if faults else 0


@dataclass(slots=True)
class _Look:
    play: Play
    root: Path
    times: int = 0

    def __call__(self, number: int) -> Iterator[str]:
        self.times += 1
        if _run(self.play, self.root, self.play.look, life=2).code != 0:
            yield f"point {number}: the next process says above what is wrong"


def _together(play: Play, root: Path, died: tuple[CrashPoint, ...], look: _Look) -> Iterator[str]:
    """One process is the model of all these deaths."""

    def act(mortal: Mortal) -> None:
        _perform(play, root, play.act, 1, mortal.descriptor, mortal.reach)

    deaths = 0
    left: dict[str, bytes] = {}
    for number, ended in dying(act, frozenset(point.number for point in died)):
        deaths += 1
        if not ended.killed or read_lines(ended.said)[-1] not in died:
            yield f"point {number}: it did not die there"
        before, left = left, contents(root)
        if left != before:
            with in_its_place(root):
                yield from look(number)
    if deaths != len(died):
        yield f"{deaths} deaths instead of {len(died)}"


def _apart(play: Play, root: Path, died: tuple[CrashPoint, ...], look: _Look) -> Iterator[str]:
    for point in died:
        with in_its_place(root):
            # What happens when depends on the machine, so a late point may not be reached.
            ended = _run(play, root, play.act, life=1, fate=death_at(point.number))
            if not ended.killed:
                _expect_end(ended, f"a play that was to die at {point}")
            yield from look(point.number)


def _expect_end(ended: Ended, what: str) -> None:
    if ended.code != 0:
        raise SystemExit(f"{what} ended with {ended.code}")


# ---- one process --------------------------------------------------------------------------------


def _run(
    play: Play, root: Path, scene: Scene, *, life: int, fate: Fate = lambda number: None
) -> Ended:
    return run_forked(lambda descriptor: _perform(play, root, scene, life, descriptor, fate))


def _perform(play: Play, root: Path, scene: Scene, life: int, descriptor: int, fate: Fate) -> None:
    points = CrashPoints(descriptor, fate=fate)

    async def performed(clock: Clock) -> None:
        resumes = play.model is not None and scene is not play.act
        async with _opened(play, root, life, clock, points, resumes=resumes) as runtime:
            await scene(runtime, root)

    if play.has_processes:
        asyncio.run(performed(SystemClock()))
        return
    gc.disable()
    loop = VirtualLoop(Random(f"life {life}"))
    clock = VirtualClock(loop)
    clock.jump(life * 60)
    loop.run_until_complete(performed(clock))
    assert loop.complaints == []


@asynccontextmanager
async def _opened(
    play: Play, root: Path, life: int, clock: Clock, points: CrashPoints, *, resumes: bool
) -> AsyncGenerator[Runtime]:
    path = str(root / "perdure.db")
    migrate.migrate(path)
    ids = SeededIds(life, clock)
    models = {} if play.model is None else {"one": CrashingModel(play.model, points)}
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(root), "TMPDIR": str(root)}),
        data_dir=str(root),
        default_directory=str(root),
        providers=(host_provider("crash", models),),
        resumes=resumes,
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
