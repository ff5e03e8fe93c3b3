"""A machine with one data directory and any number of Perdure processes that come and go.

Each process is a whole runtime, composed as in production, on its own connections to the same
file. A process can be closed, killed at any callback, or taken for dead while it still runs.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from random import Random
from typing import Final, Generic, Self, TypeVar

from perdure.core import limits
from perdure.core.models.catalog import host_provider
from perdure.host import environment
from perdure.location.context import instructions
from perdure.net import sse
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.ids import SessionID
from perdure.schema.value import State, Value
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing.seeded_ids import SeededIds
from tests.harness.checkers.ledger import Ledger
from tests.harness.checkers.witness import Witness
from tests.harness.simulation.processes import LiveProcesses
from tests.harness.simulation.provider import Conditions, SimulatedProvider
from tests.harness.simulation.tools import SimulatedTools
from tests.harness.simulation.trace import Trace
from tests.harness.simulation.virtual_clock import VirtualClock
from tests.harness.simulation.virtual_loop import VirtualLoop, VirtualProcess

T = TypeVar("T")

MODELS: Final = ("one", "two")
_ANSWER_SECONDS_MAX: Final = 60.0


# An agent that soon has to answer in text, and must ask before it reads. The models of the other
# one stand in for each other.
_CONFIGURATION: Final = (
    '{"agents": {"short": {"steps": 2}, "build": {"models": ["sim/one", "sim/two"]}}}'
)
# Nothing that may have been sent is sent again without a decision of a person.
_POLICY: Final = '{"experimental": {"recovery": "ask"}}'


class Process(State):
    name: str
    virtual_process: VirtualProcess
    runtime: Runtime
    stop: asyncio.Event
    main: asyncio.Task[None]

    @property
    def alive(self) -> bool:
        return self.virtual_process.alive and not self.main.done()


class ToldPath(Value):
    path: str
    subject: str
    """Words of each text that tells a model about it."""


class Died(Value):
    """The process died before it answered."""


class Answer(Value, Generic[T]):
    value: T


class SimulatedMachine:
    def __init__(self, seed: int, loop: VirtualLoop, place: str, trace: Trace) -> None:
        self.loop = loop
        self.chance = Random(f"{seed} steps")
        self.clock = VirtualClock(loop)
        self.conditions = Conditions()
        self.project = f"{place}/project"
        self.processes: list[Process] = []
        self.trace = trace
        self._seed = seed
        self._data = f"{place}/data"
        self._path = f"{self._data}/perdure.db"
        self._booted = 0
        self._live_processes = LiveProcesses()
        os.makedirs(self._data)
        os.makedirs(self.project)
        _write(f"{self.project}/notes.txt", "what was simulated so far\n")
        _write(f"{self.project}/opencode.json", _CONFIGURATION)
        self._config = f"{place}/.config/opencode"
        os.makedirs(self._config)
        _write(f"{self._config}/opencode.json", _POLICY)
        migrate.migrate(self._path)
        self.ledger = Ledger(self._path)
        self.witness = Witness(self.ledger, trace, self._live_processes.alive)
        self._environment = environment.from_variables(
            {"HOME": place, "TMPDIR": place, "PERDURE_TRUSTED": place}
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.trace.seal()
        self.loop.end_killed_tasks()
        self.loop.close()
        self.ledger.close()

    # ---- processes ------------------------------------------------------------------------------

    async def boot(self) -> Process:
        self._booted += 1
        name = f"p{self._booted}"
        virtual_process = self.loop.virtual_process(name)
        opened: asyncio.Future[Runtime] = self.loop.create_future()
        stop = asyncio.Event()
        main = self.loop.spawn(virtual_process, self._live(virtual_process, opened, stop))
        self.trace.say(f"boot {name}")
        await asyncio.wait((opened, main), return_when=asyncio.FIRST_COMPLETED)
        runtime = opened.result()
        process = Process(name, virtual_process, runtime, stop, main)
        self.processes.append(process)
        return process

    async def close(self, process: Process) -> None:
        """End it as a signal would: runs are interrupted, leases given back."""
        self.trace.say(f"close {process.name}")
        process.stop.set()
        async with asyncio.timeout(_ANSWER_SECONDS_MAX):
            await asyncio.wait((process.main,))
        process.main.result()
        self.processes.remove(process)

    async def kill(self, process: Process, *, after: int) -> None:
        self.trace.say(f"kill {process.name} after {after} callbacks")
        if after:
            self.loop.kill_after(process.virtual_process, after)
        else:
            self.loop.kill(process.virtual_process)
        await process.virtual_process.died
        self._live_processes.leave(process.name)
        self.processes.remove(process)
        self.witness.died(process.name)

    async def orphan(self, process: Process, *, after: int) -> None:
        """Everyone else takes it for dead while it still runs a little."""
        self.trace.say(f"orphan {process.name}, killed after {after} callbacks")
        self._live_processes.leave(process.name)
        self.loop.kill_after(process.virtual_process, after)
        await process.virtual_process.died
        self.processes.remove(process)

    async def ask(
        self, process: Process, work: Callable[[Runtime], Awaitable[T]]
    ) -> Answer[T] | Died:
        """What a client of that process gets; raises what the client would see."""

        async def answer() -> T:
            return await work(process.runtime)

        task = self.loop.spawn(process.virtual_process, answer())
        waiting = (task, process.virtual_process.died)
        async with asyncio.timeout(_ANSWER_SECONDS_MAX):
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return Answer(task.result()) if task.done() else Died()

    async def ask_briefly(
        self, process: Process, work: Callable[[Runtime], Awaitable[object]], *, seconds: float
    ) -> bool:
        """Whether an answer came before the client went away; raises what it would see."""

        async def answer() -> None:
            await work(process.runtime)

        task = self.loop.spawn(process.virtual_process, answer())
        task.add_done_callback(_looked_at)
        await asyncio.wait(
            (task, process.virtual_process.died),
            return_when=asyncio.FIRST_COMPLETED,
            timeout=seconds,
        )
        if task.done():
            task.result()
            return True
        task.cancel()
        return False

    def write_instructions(self, text: str) -> None:
        """The project's instruction file; without text there is none."""
        path = f"{self.project}/{instructions.FILE_NAME}"
        _remove(path)
        if text:
            _write(path, text.strip())

    def toggle_repository(self) -> None:
        """Make the project a repository, or stop it from being one."""
        git = f"{self.project}/.git"
        if os.path.exists(git):
            shutil.rmtree(git)
            return
        os.makedirs(git)
        _write(f"{git}/HEAD", "ref: refs/heads/main\n")
        _write(f"{git}/opencode", "simulated-project\n")

    def told_paths(self) -> list[ToldPath]:
        """The files and directories that a System Context is made of now."""
        paths = (
            ToldPath(f"{self.project}/{instructions.FILE_NAME}", "instruction files"),
            ToldPath(f"{self.project}/opencode.json", "subagents"),
            ToldPath(f"{self.project}/.git", "Git repository"),
            ToldPath(f"{self._config}/opencode.json", "subagents"),
            ToldPath(self._config, "instruction files"),
        )
        return [told for told in paths if os.path.exists(told.path)]

    def some(self) -> Process:
        return self.chance.choice(self.processes)

    def active(self) -> list[tuple[Process, SessionID]]:
        return [
            (process, session_id)
            for process in self.processes
            for session_id in process.runtime.sessions.active()
        ]

    async def _live(
        self,
        virtual_process: VirtualProcess,
        opened: "asyncio.Future[Runtime]",
        stop: asyncio.Event,
    ) -> None:
        name, conditions, witness = virtual_process.name, self.conditions, self.witness
        chance = Random(f"{self._seed} {name}")
        provider = SimulatedProvider(name, chance, witness, conditions)
        settings = RuntimeSettings(
            environment=self._environment,
            data_dir=self._data,
            default_directory=self.project,
            providers=(host_provider("sim", dict.fromkeys(MODELS, provider)),),
            # Every third process is a command of a person, in the directory of all Sessions.
            resumes="directory" if int(name[1:]) % 3 == 0 else "all",
        )
        database = SqliteDatabase(self._path, inline=True)
        foundations = Platform(
            database=database,
            processes=self._live_processes.enter(name),
            clock=self.clock,
            ids=SeededIds(chance.getrandbits(32), self.clock),
            chance=Random(f"{self._seed} {name} waits"),
            # Every second process commits an answer in small pieces, as a very long one would be.
            piece_events_max=3 if int(name[1:]) % 2 else limits.APPEND_EVENTS_MAX,
        )
        async with AsyncExitStack() as stack:
            stack.callback(self._live_processes.leave, name)
            # Withdrawn after the runtime has ended, as those of an embedding program would be.
            application = stack.enter_context(ExitStack())
            await stack.enter_async_context(database)
            runtime = await stack.enter_async_context(compose(settings, foundations, self._path))
            tools = SimulatedTools(name, chance, witness, conditions)
            application.enter_context(tools.registered(runtime.tools))
            runtime.store.listen(
                lambda session_id, stored, location: witness.told(name, session_id, stored)
            )
            opened.set_result(runtime)
            if chance.random() < 0.5:
                self.loop.spawn(virtual_process, self._listen(name, runtime))
            await stop.wait()

    async def _listen(self, name: str, runtime: Runtime) -> None:
        """Subscribe to live events: without a subscriber no fragments are made."""
        frames = sse.Reader(bytes_max=limits.LIVE_RING_BYTES_MAX)
        with runtime.hub.subscribe() as reader:
            while (chunk := await reader.next()) is not None:
                for frame in frames.feed(chunk):
                    self.witness.live(name, frame.data)


def _looked_at(task: asyncio.Task[None]) -> None:
    """Retrieve the exception of a task that its client no longer waits for."""
    if not task.cancelled():
        task.exception()


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
