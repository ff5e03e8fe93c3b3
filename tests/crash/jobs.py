"""`python -m tests.crash.jobs [N]`: die at every N-th point in the life of background jobs, look.

A process starts a job and waits for its end, starts another and cancels it, and is killed. The next
one takes over what is left. The jobs are real: they live on while nobody is there. It prints what
is wrong and exits with 1 if anything is. A command, because a process that forks may have no
threads.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from msgspec import UNSET

from perdure.core import job as rules
from perdure.host import environment
from perdure.host.clock import SystemClock
from perdure.host.detached import LocalDetached
from perdure.host.neighbours import ProcessLocks
from perdure.runtime.runtime import Foundations, Runtime, RuntimeSettings, compose
from perdure.schema.ids import SessionID, ToolCallID
from perdure.schema.job import JobInfo
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from perdure.testing.crash_points import CrashPoints, read_lines, write_line
from perdure.testing.crash_seams import CrashingDatabase, CrashingDetached
from perdure.testing.forked import Ended, run_forked
from perdure.tools.job_desk import JobStart
from tests.fixtures import PLACE, Facts
from tests.support import database_check

SESSION: Final = SessionID("ses_jobs")
RUNS: Final = "echo ran >>effects; exit 3"
STAYS: Final = "sleep 60"
WAIT_SECONDS: Final = 20


def main() -> int:
    import_module("perdure.runtime.engine")
    with tempfile.TemporaryDirectory() as folder:
        site, before = Path(folder) / "site", Path(folder) / "before"
        expect_end(run_forked(partial(_run, site, _furnish)), "furnishing")
        copy(site, before)
        whole = run_forked(partial(_run, site, _work))
        expect_end(whole, "jobs that are left alone")
        points = read_lines(whole.said)
        each = int(sys.argv[1]) if len(sys.argv) > 1 else 1
        died = [point.number for point in points[::each]]
        faults = [fault for number in died for fault in _faults(before, site, number)]
    sys.stdout.writelines(f"{point.name}\n" for point in points)
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"{len(died)} deaths: {len(faults)} faults\n")
    return 1 if faults else 0


def _faults(before: Path, site: Path, number: int) -> list[str]:
    copy(before, site)
    # How often a job is looked at depends on the machine, so a late point may not be reached.
    run_forked(partial(_run, site, _work, die_at=number))
    after = run_forked(partial(_run, site, _take_over_and_look))
    return [] if after.code == 0 else [f"point {number}: the next process says above what is wrong"]


def _run(
    site: Path,
    work: Callable[[Runtime, Path], Coroutine[None, None, None]],
    descriptor: int,
    *,
    die_at: int | None = None,
) -> None:
    async def life() -> None:
        points = CrashPoints(lambda point: write_line(descriptor, point), die_at=die_at)
        async with _opened(site, points if work is _work else None) as runtime:
            await work(runtime, site)

    asyncio.run(life())


@asynccontextmanager
async def _opened(site: Path, points: CrashPoints | None) -> AsyncGenerator[Runtime]:
    site.mkdir(exist_ok=True)
    path = str(site / "perdure.db")
    migrate.migrate(path)
    clock = SystemClock()
    ids = SeededIds(len(list(site.iterdir())), clock)
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(site), "TMPDIR": str(site)}),
        data_dir=str(site),
        default_directory=str(site),
        resumes=False,
    )
    async with AsyncExitStack() as stack:
        neighbours = stack.enter_context(ProcessLocks(str(site / "processes"), ids.named("prc")))
        database = await stack.enter_async_context(SqliteDatabase(path, inline=True))
        machine = LocalDetached()
        on = Foundations(
            database=database if points is None else CrashingDatabase(database, points),
            neighbours=neighbours,
            clock=clock,
            ids=ids,
            detached=machine if points is None else CrashingDetached(machine, points),
        )
        yield await stack.enter_async_context(compose(settings, on, path))


async def _furnish(runtime: Runtime, _: Path) -> None:
    await runtime.store.append(SESSION, [Facts(SESSION).created()], location=PLACE)


async def _work(runtime: Runtime, site: Path) -> None:
    first = await _start(runtime, site, RUNS)
    await runtime.jobs.look(SESSION, first.id, wait_seconds=WAIT_SECONDS)
    second = await _start(runtime, site, STAYS)
    await runtime.jobs.cancel(SESSION, second.id, quiet=True)


async def _start(runtime: Runtime, site: Path, command: str) -> JobInfo:
    return await runtime.jobs.start(
        JobStart(
            session_id=SESSION,
            call_id=ToolCallID("call_1"),
            shell="/bin/sh",
            command=command,
            directory=str(site),
            variables=None,
            seconds_max=60,
        )
    )


async def _take_over_and_look(runtime: Runtime, site: Path) -> None:
    await runtime.jobs.adopt()
    for job in await runtime.jobs.list(SESSION):
        if job.command == STAYS:
            await runtime.jobs.cancel(SESSION, job.id, quiet=True)
        else:
            await runtime.jobs.look(SESSION, job.id, wait_seconds=WAIT_SECONDS)
    found = {job.command: job for job in await runtime.jobs.list(SESSION)}
    effects = site / "effects"
    ran = effects.read_text().count("ran") if effects.exists() else 0
    told = _told(site)
    if (first := found.get(RUNS)) is None:
        assert ran == 0, "a command ran that nobody knows of"
    else:
        assert (first.state, first.exit_code, ran) in _ENDS, (first, ran)
        assert told.count(rules.message_id(first.id)) == 1, "its end was not told once"
    if (second := found.get(STAYS)) is not None:
        assert second.state in {"cancelled", "lost"}, second
        assert told.count(rules.message_id(second.id)) == (second.state == "lost")
    assert len(told) == len(set(told)), "something was told twice"
    await database_check.check(site / "perdure.db")


_ENDS: Final = (("exited", 3, 1), ("lost", UNSET, 0))
"""How the first job may have ended: as it does, or before it had our word to begin."""


def _told(site: Path) -> list[str]:
    rows = database_check.dump(site / "perdure.db")
    waiting = [str(row[0]) for row in rows["session_notice"]]
    return waiting + [str(row[0]) for row in rows["session_message"] if "synthetic" in row]


def copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def expect_end(ended: Ended, what: str) -> None:
    if ended.code != 0:
        raise SystemExit(f"{what} ended with {ended.code}")


if __name__ == "__main__":
    sys.exit(main())
