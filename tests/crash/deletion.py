"""`python -m tests.crash.deletion`: die at every point of a deletion, start again, look.

A Session with more rows than one transaction removes, its child and a kept tool output are deleted
by a process that is killed; the next one finishes what was begun. It prints what is wrong and exits
with 1 if anything is. A command, because a process that forks may have no threads.
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

from msgspec.structs import replace

from perdure.core import limits
from perdure.host import environment
from perdure.host.clock import SystemClock
from perdure.host.neighbours import ProcessLocks
from perdure.location.builtin_tools import OUTPUT_DIRECTORY
from perdure.runtime.runtime import Foundations, Runtime, RuntimeSettings, compose
from perdure.schema import session_event as events
from perdure.schema.ids import SessionID
from perdure.schema.session_event import SessionEvent
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from perdure.testing.crash_points import CrashPoints, read_lines, write_line
from perdure.testing.crash_seams import CrashingDatabase
from perdure.testing.forked import Ended, run_forked
from tests.fixtures import PLACE, Facts, answered
from tests.support import database_check

PARENT: Final = SessionID("ses_parent")
CHILD: Final = SessionID("ses_child")
OTHER: Final = SessionID("ses_other")
MESSAGES: Final = limits.DELETION_ROWS_MAX + 50
"""More than one transaction takes away."""


def main() -> int:
    import_module("perdure.runtime.engine")
    with tempfile.TemporaryDirectory() as folder:
        # The log names files by their path, so every life is lived in the same place.
        site, before = Path(folder) / "site", Path(folder) / "before"
        _expect_end(run_forked(partial(_run, site, _furnish)), "furnishing")
        _copy(site, before)
        whole = run_forked(partial(_run, site, _delete))
        _expect_end(whole, "a deletion that is left alone")
        points = read_lines(whole.said)
        faults = [fault for point in points for fault in _faults(before, site, point.number)]
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    sys.stdout.write(f"{len(points)} deaths: {len(faults)} faults\n")
    return 1 if faults else 0


def _faults(before: Path, site: Path, number: int) -> list[str]:
    _copy(before, site)
    if not run_forked(partial(_run, site, _delete, die_at=number)).killed:
        return [f"point {number}: it did not die"]
    after = run_forked(partial(_run, site, _finish_and_look))
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
        async with _opened(site, points if work is _delete else None) as runtime:
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
        on = Foundations(
            database=database if points is None else CrashingDatabase(database, points),
            neighbours=neighbours,
            clock=clock,
            ids=ids,
        )
        yield await stack.enter_async_context(compose(settings, on, path))


async def _furnish(runtime: Runtime, site: Path) -> None:
    outputs = site / OUTPUT_DIRECTORY
    outputs.mkdir(parents=True)
    (outputs / "tool_kept").write_text("complete", encoding="utf-8")
    for session_id in (PARENT, CHILD, OTHER):
        facts = Facts(session_id)
        created = facts.created()
        if session_id == CHILD:
            created = replace(created, info=replace(created.info, parent_id=PARENT))
        mark = session_id.removeprefix("ses_")
        log: list[SessionEvent] = [
            created,
            *answered(facts, f"msg_{mark}_1", f"msg_{mark}_2", "said"),
            facts.step(f"msg_{mark}_3"),
            facts.called(f"msg_{mark}_3", "call"),
            replace(
                facts.succeeded(f"msg_{mark}_3", "call"),
                output_paths=(str(outputs / "tool_kept"),) if session_id == PARENT else (),
            ),
            facts.ended(f"msg_{mark}_3"),
        ]
        await runtime.store.append(session_id, log, location=PLACE)
    many = Facts(PARENT)
    await runtime.store.append(
        PARENT,
        [
            many.stamped(events.SyntheticAdded, message_id=f"msg_many_{n}", text="x")
            for n in range(MESSAGES)
        ],
        location=PLACE,
    )


async def _delete(runtime: Runtime, _: Path) -> None:
    await runtime.deletions.delete(PARENT)


async def _finish_and_look(runtime: Runtime, site: Path) -> None:
    await runtime.deletions.finish()
    path = site / "perdure.db"
    rows = database_check.dump(path)
    kept = (site / OUTPUT_DIRECTORY / "tool_kept").exists()
    there = {
        one: {t for t, found in rows.items() if any(one in map(str, row) for row in found)}
        for one in (PARENT, CHILD, OTHER)
    }
    complete = {"event", "session", "session_message", "session_input"}
    assert there[OTHER] >= complete, there
    for one in (PARENT, CHILD):
        assert there[one] == set() or there[one] >= complete, there
    assert not there[CHILD] or there[PARENT], "a child without its parent"
    assert kept == bool(there[PARENT]), "the file goes with its Session"
    assert rows["session_deletion"] == []
    await database_check.check(path)


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _expect_end(ended: Ended, what: str) -> None:
    if ended.code != 0:
        raise SystemExit(f"{what} ended with {ended.code}")


if __name__ == "__main__":
    sys.exit(main())
