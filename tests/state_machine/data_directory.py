"""One data directory on virtual time, and the one process at a time that uses it.

The process is a whole runtime on a real database. It can be closed, or killed at any callback; the
next one opens what it left. Models and tools do what the test planned. What must hold is checked in
`expectations`.
"""

import asyncio
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, TypeVar

from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, ToolCallID
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ScriptedModel, SeededIds, failure, text, tool_call
from perdure.tools.api.tool import Tool, ToolCallContext
from tests.harness.simulation.processes import LiveProcesses
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop, VirtualProcess

T = TypeVar("T")
Plan = Literal["text", "note", "large", "slow", "ask", "wonder", "fail"]
"""What a model does in one turn: answer, use a tool, take long, need a permission or a person."""

PROVIDER: Final = "planned"
MODELS: Final = ("one", "two")
CAREFUL: Final = "careful"
"""An agent that asks before everything it does."""
SLOW_SECONDS: Final = 0.5
LARGE_WORDS: Final = 4_000
"""Of a note whose result is more than a compaction keeps as it is."""
ANSWER_SECONDS_MAX: Final = 600.0
CALLBACKS_MAX: Final = 40
_CONFIGURATION: Final = '{"agents": {"careful": {}, "hasty": {"steps": 2}}}'
_QUESTION: Final[JsonObject] = {"question": "Which?", "header": "Which", "options": []}


class NoteInput(Record):
    note: str


class DataDirectory:
    def __init__(self, place: Path, seed: int) -> None:
        self.path = str(place / "data" / "perdure.db")
        self.plans: deque[Plan] = deque()
        self.effects: Counter[tuple[MessageID, ToolCallID]] = Counter()
        """How often each call of the tool `note` has really taken place."""
        self.loop = VirtualLoop(Random(seed))
        self._chance = Random(seed)
        self._seed = seed
        self._place = place
        self._clock = VirtualClock(self.loop)
        self._live_processes = LiveProcesses()
        self._processes = 0
        (place / "data").mkdir()
        (place / "project").mkdir()
        (place / "project" / "opencode.json").write_text(_CONFIGURATION, encoding="utf-8")
        _copy_new_database(self.path)
        self.open()

    # ---- what the test does ---------------------------------------------------------------------

    def ask(self, work: Callable[[Runtime], Awaitable[T]]) -> T:
        """What a client of the process gets; raises what the client would see."""

        async def answer() -> T:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await work(self._runtime)

        return self._outside(self._inside(answer()))

    def ask_and_crash(self, work: Callable[[Runtime], Awaitable[T]], *, after: int) -> T | None:
        """The answer, or None when the process died before it. Now there is none."""

        async def answer() -> T:
            return await work(self._runtime)

        async def race() -> T | None:
            task = self._inside(answer())
            self.loop.kill_after(self._virtual_process, after)
            await self._virtual_process.died
            return task.result() if task.done() else None

        found = self._outside(race())
        self._live_processes.leave(self._virtual_process.name)
        return found

    def close(self) -> None:
        """End the process as a signal would have it."""
        self._stop.set()
        self._outside(self._main)

    def open(self) -> None:
        """Start a process, when there is none."""
        self._processes += 1
        self._virtual_process = self.loop.virtual_process(f"p{self._processes}")
        self._stop = asyncio.Event()
        opened: asyncio.Future[Runtime] = self.loop.create_future()
        self._main = self._inside(self._live(self._virtual_process, opened, self._stop))
        self._runtime = self._outside(_first(opened, self._main))
        self._opened_at = self.loop.time()

    def pass_time(self, seconds: float) -> None:
        self._outside(asyncio.sleep(seconds))

    @property
    def age(self) -> float:
        """For how many seconds this process has been there."""
        return self.loop.time() - self._opened_at

    def go_on(self) -> None:
        """Run a few callbacks that are ready; no time passes."""

        async def wait() -> None:
            for _ in range(self._chance.randrange(1, CALLBACKS_MAX)):
                await asyncio.sleep(0)

        self._outside(wait())

    def demolish(self) -> None:
        """Everything is over, for the living and the dead."""
        if self._virtual_process.alive:
            self.close()
        self.loop.end_killed_tasks()
        self.loop.close()

    # ---- the process ----------------------------------------------------------------------------

    def _inside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.loop.spawn(self._virtual_process, work)

    def _outside(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(work)

    async def _live(
        self,
        virtual_process: VirtualProcess,
        opened: "asyncio.Future[Runtime]",
        stop: asyncio.Event,
    ) -> None:
        settings = RuntimeSettings(
            environment=environment.from_variables(
                {"HOME": str(self._place), "TMPDIR": str(self._place), "PERDURE_TRUSTED": "*"}
            ),
            data_dir=str(self._place / "data"),
            default_directory=str(self._place / "project"),
            providers=(host_provider(PROVIDER, dict.fromkeys(MODELS, self._model)),),
        )
        async with AsyncExitStack() as stack:
            stack.callback(self._live_processes.leave, virtual_process.name)
            database = await stack.enter_async_context(SqliteDatabase(self.path, inline=True))
            foundations = Platform(
                database=database,
                processes=self._live_processes.enter(virtual_process.name),
                clock=self._clock,
                ids=SeededIds(self._seed + self._processes, self._clock),
            )
            runtime = await stack.enter_async_context(compose(settings, foundations, self.path))
            stack.enter_context(runtime.tools.register(self._note()))
            opened.set_result(runtime)
            await stop.wait()

    # ---- what the process meets -----------------------------------------------------------------

    async def _model(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        plan = self.plans.popleft() if self.plans and request.tools else "text"
        if plan == "slow":
            await asyncio.sleep(SLOW_SECONDS)
        async for events in _script(plan)(request):
            yield events

    def _note(self) -> Tool[NoteInput, NoteInput]:
        async def execute(input: NoteInput, context: ToolCallContext) -> NoteInput:
            self.effects[context.assistant_message_id, context.call_id] += 1
            await asyncio.sleep(SLOW_SECONDS)
            return input

        return Tool(
            name="note",
            description="Take a note.",
            input=NoteInput,
            output=NoteInput,
            execute=execute,
        )


def _script(plan: Plan) -> ScriptedModel:
    match plan:
        case "text" | "slow":
            return ScriptedModel().turn(text("as you say"))
        case "note":
            calls = (tool_call("note", {"note": str(number)}) for number in range(2))
            return ScriptedModel().turn(*calls)
        case "large":
            return ScriptedModel().turn(tool_call("note", {"note": "at length " * LARGE_WORDS}))
        case "ask":
            return ScriptedModel().turn(tool_call("read", {"path": "opencode.json"}))
        case "wonder":
            return ScriptedModel().turn(tool_call("question", {"questions": [_QUESTION]}))
        case "fail":
            return ScriptedModel().turn(failure(LLMError("invalid-request", "not like this")))


async def _first(opened: "asyncio.Future[Runtime]", main: asyncio.Task[None]) -> Runtime:
    await asyncio.wait((opened, main), return_when=asyncio.FIRST_COMPLETED)
    if not opened.done():
        await main
    return opened.result()


_NEW: dict[str, bytes] = {}


def _copy_new_database(path: str) -> None:
    """A new database; made once, because an example has no time to migrate."""
    if not _NEW:
        migrate.migrate(path)
        with open(path, "rb") as made:
            _NEW["database"] = made.read()
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(_NEW["database"])
