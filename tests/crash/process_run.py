"""One run of the script in a process: the runtime as in production, with crash points at each port.

Time and the order of callbacks are virtual, so that a point has the same number in every run. The
database, the files, the lock that shows other processes that this one lives, and the kill are real.
"""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final

from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.host.process_locks import ProcessLocks
from perdure.llm.model_call import ModelCall
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import SeededIds
from perdure.tools.api.tool import Tool, ToolCallContext
from tests.crash.crash_site import CrashSite
from tests.crash.script import NOTES, Model, Person
from tests.harness.crash.points import CrashPoints
from tests.harness.crash.seams import CrashingDatabase, CrashingModel, crashing_tool
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop

SECONDS_MAX: Final = 60
"""Of virtual time: longer than the script takes, so that a longer wait would never end."""
WARM_UP: Final = 99
"""The number of a process that the sweep never uses, so that no ids are shared."""


class NoteInput(Record):
    line: str


class NoteOutput(Record):
    noted: str


def run_script(
    site: CrashSite, *, process: int, descriptor: int, on_point: Callable[[int], None]
) -> None:
    """Run the script to its end, or until the process is killed. `process` counts from 0."""
    _run(site, process, CrashPoints(descriptor, on_point=on_point))


def warm_up(site: CrashSite) -> None:
    """Run the script in the process that forks, so that each child starts with full caches.

    It uses names of its own, so that no child has state of the conversation in memory.
    """
    with open(os.devnull, "wb") as nowhere:
        _run(site, WARM_UP, CrashPoints(nowhere.fileno()), names="_rehearsed")
    gc.enable()
    gc.collect()
    gc.freeze()


def _run(site: CrashSite, process: int, points: CrashPoints, *, names: str = "") -> None:
    # Finalizers must not run at moments that the collector chooses.
    gc.disable()
    errors = _Errors()
    logger = logging.getLogger("perdure")
    logger.addHandler(errors)
    loop = VirtualLoop(Random(f"life {process}"))
    loop.run_until_complete(_run_script(site, loop, process, points, names))
    logger.removeHandler(errors)
    assert [*errors.heard, *loop.complaints] == []


async def _run_script(
    site: CrashSite, loop: VirtualLoop, process: int, points: CrashPoints, names: str
) -> None:
    model = Model(lambda about: _append(site.asked, f"{about}\n".encode()))
    points.reach("boot/begin")
    migrate.migrate(str(site.database))
    points.reach("boot/migrated")
    async with _opened(site, loop, process, CrashingModel(model, points), points) as runtime:
        runtime.store.listen(
            lambda session_id, stored, location: _append(
                site.told, "".join(f"{item.seq} {item.id}\n" for item in stored).encode()
            )
        )
        person = Person(
            runtime,
            model.held,
            points,
            acknowledge=lambda receipt: _append(site.receipts, codec.encode(receipt) + b"\n"),
            decides=lambda: _append(site.decided, b"retry\n"),
            names=names,
        )
        with runtime.tools.register(crashing_tool(_note(site), points)):
            async with asyncio.timeout(SECONDS_MAX):
                await person.run()
        points.reach("script/over")
    points.reach("shutdown/over")


@asynccontextmanager
async def _opened(
    site: CrashSite, loop: VirtualLoop, process: int, model: ModelCall, points: CrashPoints
) -> AsyncGenerator[Runtime]:
    clock = VirtualClock(loop)
    clock.jump(process * 60)
    ids = SeededIds(process, clock)
    home = str(site.root)
    settings = RuntimeSettings(
        environment=environment.from_variables(
            {"HOME": home, "TMPDIR": home, "PERDURE_TRUSTED": "*"}
        ),
        data_dir=str(site.data),
        default_directory=str(site.project),
        providers=(host_provider("crash", {"one": model, "two": model}),),
    )
    async with AsyncExitStack() as stack:
        locks = ProcessLocks(str(site.data / "processes"), ids.named("prc"))
        processes = stack.enter_context(locks)
        points.reach("boot/locked")
        database = SqliteDatabase(str(site.database), inline=True)
        await stack.enter_async_context(database)
        foundations = Platform(
            database=CrashingDatabase(database, points),
            processes=processes,
            clock=clock,
            ids=ids,
        )
        composed = compose(settings, foundations, str(site.database))
        yield await stack.enter_async_context(composed)


def _note(site: CrashSite) -> Tool[NoteInput, NoteOutput]:
    """A tool whose effect is a line that names the call, so that a second execution is seen.

    No call continues before all calls of its turn have begun, so that several are open at once.
    """
    together = asyncio.Barrier(len(NOTES))

    async def execute(input: NoteInput, context: ToolCallContext) -> NoteOutput:
        await together.wait()
        _append(site.effects, f"{context.assistant_message_id} {context.call_id}\n".encode())
        return NoteOutput(noted=input.line)

    return Tool(
        name="note",
        description="Note a line.",
        input=NoteInput,
        output=NoteOutput,
        execute=execute,
    )


def _append(path: Path, data: bytes) -> None:
    """At the end of a file, and on the disk when this returns."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


class _Errors(logging.Handler):
    """Collects what the runtime logs as an error: nothing in the script is meant to fail."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(self.format(record))
