"""`python -m tests.crash.tasks [N]`: die at every N-th point in the life of a subagent, look.

A process has a parent call a subagent and waits for both, and is killed. The next one goes on with
what is left. Whatever it finds, there is at most one child, and its result is told to the parent
once: by the call, or by a notice. It prints what is wrong and exits with 1 if anything is.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

from perdure.core.catalog import supplied_provider
from perdure.host import environment
from perdure.host.clock import SystemClock
from perdure.host.neighbours import ProcessLocks
from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.runtime.runtime import Foundations, Runtime, RuntimeSettings, compose
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.model import ModelRef
from perdure.schema.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ScriptedModel, SeededIds, text, tool_call
from perdure.testing.crash_points import CrashPoints, read_lines, write_line
from perdure.testing.crash_seams import CrashingDatabase, CrashingModel
from perdure.testing.forked import run_forked
from perdure.testing.scripted_model import texts_of
from tests.crash.jobs import copy, expect_end
from tests.support import database_check

PARENT: Final = SessionID("ses_parent")
PROMPT: Final = MessageID("msg_root")
MODEL: Final = ModelRef(id="one", provider_id="crash")
RESULT: Final = "a very deep hole"
WAIT_SECONDS: Final = 20
LOOK_SECONDS: Final = 0.02
CALL: Final = {"description": "Dig", "prompt": "dig", "subagent_type": "general"}


async def model(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
    """The parent calls a subagent first; everybody else has one thing to say."""
    said = ScriptedModel()
    if texts_of(request) != ["root"]:
        said.turn(text(RESULT if texts_of(request)[0] == "dig" else "ok"))
    elif any(
        message.role in {"assistant", "tool"} for run in request.runs for message in run.messages
    ):
        said.turn(text("ok"))
    else:
        said.turn(tool_call("task", CALL))
    async for batch in said(request):
        yield batch


def main() -> int:
    import_module("perdure.runtime.engine")
    with tempfile.TemporaryDirectory() as folder:
        site, before = Path(folder) / "site", Path(folder) / "before"
        expect_end(run_forked(partial(_run, site, _furnish)), "furnishing")
        copy(site, before)
        whole = run_forked(partial(_run, site, _work))
        expect_end(whole, "a subagent that is left alone")
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
    # What shares a commit depends on the machine, so a late point may not be reached.
    run_forked(partial(_run, site, _work, die_at=number))
    after = run_forked(partial(_run, site, _go_on_and_look))
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
    called = model if points is None else CrashingModel(model, points)
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(site), "TMPDIR": str(site)}),
        data_dir=str(site),
        default_directory=str(site),
        providers=(supplied_provider("crash", {"one": called}),),
        resumes=points is None,
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


async def _furnish(runtime: Runtime, _: Path) -> None:
    await runtime.sessions.create(id=PARENT, model=MODEL)


async def _work(runtime: Runtime, _: Path) -> None:
    await runtime.sessions.prompt(PARENT, PromptInput(text="root"), id=PROMPT)
    await runtime.sessions.wait(PARENT)


async def _go_on_and_look(runtime: Runtime, site: Path) -> None:
    # Whether it was admitted or not: the same prompt again is the same admission.
    await runtime.sessions.prompt(PARENT, PromptInput(text="root"), id=PROMPT)
    async with asyncio.timeout(WAIT_SECONDS):
        while not _rests(runtime, site):
            await runtime.clock.sleep(LOOK_SECONDS)
    rows = database_check.dump(site / "perdure.db")
    children = await runtime.children.of(PARENT)
    called = [row for row in rows["event"] if "tool.called" in str(row)]
    told = sum(RESULT in str(row) for row in rows["session_message"] if PARENT in row)
    assert len(children) <= len(called) <= 1, f"{len(children)} children of {len(called)} calls"
    assert told == len(children), f"a result was told {told} times"
    assert all("delivered" in row for row in rows["child_task"]), rows["child_task"]
    await database_check.check(site / "perdure.db")


def _rests(runtime: Runtime, site: Path) -> bool:
    """Whether nothing runs, and nothing is left that would."""
    rows = database_check.dump(site / "perdure.db")
    waits = rows["session_attempt"] or rows["session_notice"] or rows["session_wake"]
    open_tasks = [row for row in rows["child_task"] if "delivered" not in row]
    answered = any("assistant" in row for row in rows["session_message"] if PARENT in row)
    return answered and not (waits or open_tasks or runtime.sessions.active())


if __name__ == "__main__":
    sys.exit(main())
