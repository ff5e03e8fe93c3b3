"""Runs the whole runtime from one seed: draws steps, checks the promises after each, then rests.

The driver is outside of every simulated process. A run ends when every prompt has run, so that what
must hold at rest is checked at least once. The first violation ends the run.
"""

import asyncio
import gc
import logging
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Final

from perdure.runtime.turn.boundary import ContextBlockedError
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.value import Value
from tests.harness.checkers.all import CHECKERS
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.witness import Violation
from tests.harness.simulation.client_steps import create
from tests.harness.simulation.clients import Clients
from tests.harness.simulation.machine import SimulatedMachine
from tests.harness.simulation.provider import Conditions, SimulatedDefect
from tests.harness.simulation.steps import CHANGES, WORK, Step
from tests.harness.simulation.trace import Trace
from tests.harness.simulation.virtual_loop import DeadlockError, VirtualLoop

STEPS_DEFAULT: Final = 60
TRACE_LINES_SHOWN: Final = 40
_PAUSES: Final = (0.0, 0.0, 0.003, 0.05, 0.2, 0.6)
_WORK_SHARES: Final = (0.05, 0.1, 0.1, 0.3)
"""How much of a run is work; few runs are busy all the time."""
_FREQUENCIES: Final = (0.0, 0.3, 1.0, 2.0)
"""How much more or less often than usual a step is drawn in a run: runs differ in what they do."""
_REST_CHANCE: Final = 0.03
_QUIET_SECONDS: Final = 2.5
"""Longer than any process takes to notice what another one did."""
_REST_SECONDS_MAX: Final = 300.0
_ROUNDS_MAX: Final = 20
_MEMORY: Final = "/dev/shm"


class Report(Value, kw_only=True):
    """How a run went. Equal seeds have equal digests."""

    seed: int
    asked: int
    steps: int
    """How many were made: fewer than asked for when a promise was broken."""
    violations: tuple[Violation, ...]
    digest: str
    events: int
    requests: int
    trace: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        if self.ok:
            return f"seed {self.seed}: {self.events} events, {self.requests} requests, all kept"
        lines = [
            *self.trace[-TRACE_LINES_SHOWN:],
            f"seed {self.seed}, step {self.steps}: a promise is broken",
            *(f"  {violation}" for violation in self.violations),
            f"repeat with: make simulate SEED={self.seed} STEPS={self.asked}",
        ]
        return "\n".join(lines)


def run_seed(
    seed: int, *, steps: int = STEPS_DEFAULT, show: Callable[[str], None] | None = None
) -> Report:
    """Run one simulation in a temporary directory, on a loop of its own."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-", dir=memory) as place:
        loop = VirtualLoop(Random(f"{seed} schedule"))
        trace = Trace(loop, place=place, show=show)
        machine = SimulatedMachine(seed, loop, place, trace)
        with _collector_off(), _defects_heard(machine.conditions) as defects, machine:
            simulation = Simulation(machine, defects)
            try:
                loop.run_until_complete(simulation.run(steps))
            except DeadlockError as error:
                machine.witness.accuse("P9", str(error))
            return simulation.report(seed, asked=steps)


class Simulation:
    def __init__(self, machine: SimulatedMachine, defects: list[str]) -> None:
        self._machine = machine
        self._clients = Clients(machine)
        self._checkers = tuple(checker() for checker in CHECKERS)
        self._defects = defects
        self._steps = _drawn(machine.chance)
        self._step = 0
        self._events = 0

    async def run(self, steps: int) -> None:
        try:
            await self._machine.boot()
            while not self._clients.sessions:
                await create(self._clients)
            for number in range(1, steps + 1):
                self._step = number
                await self._one(number)
                if self._broken:
                    return
            await self._last_orders()
        except TimeoutError:
            self._machine.witness.accuse("P9", "a client was never answered")

    def report(self, seed: int, *, asked: int) -> Report:
        return Report(
            seed=seed,
            asked=asked,
            steps=self._step,
            violations=tuple(self._machine.witness.violations),
            digest=self._machine.trace.digest(),
            events=self._events,
            requests=len(self._machine.witness.requests),
            trace=tuple(self._machine.trace.lines),
        )

    @property
    def _broken(self) -> bool:
        return bool(self._machine.witness.violations)

    async def _one(self, number: int) -> None:
        machine, chance = self._machine, self._machine.chance
        if not machine.processes:
            await machine.boot()
        self._clients.reconnect()
        (step,) = chance.choices([*self._steps], [*self._steps.values()])
        machine.trace.say(f"step {number}: {step.__name__}")
        await step(self._clients)
        await asyncio.sleep(chance.choice(_PAUSES))
        self._check(at_rest=False)
        if chance.random() < _REST_CHANCE and not self._broken:
            await self._rest()

    def _check(self, *, at_rest: bool) -> None:
        machine = self._machine
        fresh = machine.ledger.new_events()
        # Where nothing was committed there is nothing new to check.
        if fresh or at_rest:
            self._events += len(fresh)
            self._look(Seen(self._clients, fresh, at_rest))
        for what in (*machine.loop.complaints, *self._defects):
            machine.witness.accuse("defect", what)

    def _look(self, seen: Seen) -> None:
        witness = self._machine.witness
        with self._machine.ledger.at_one_moment():
            for checker in self._checkers:
                for what in checker.check(seen):
                    witness.accuse(checker.promise, what)

    # ---- coming to rest -------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Let everything end, check what holds then, and run what was left waiting."""
        self._machine.trace.say("rest")
        self._machine.conditions.calm = True
        for _ in range(_ROUNDS_MAX):
            if not self._machine.processes:
                await self._machine.boot()
            self._clients.reconnect()
            await self._quiet()
            # Only now: a Session that runs, if only to see that it may not, refuses.
            if await self._decide():
                await self._quiet()
            self._check(at_rest=True)
            waiting, silent = self._waiting(), self._silent()
            if self._broken or not (waiting or silent):
                break
            for prompt in waiting:
                await self._clients.send(self._machine.some(), self._clients.known(prompt))
            for session_id in silent:
                prompt = self._clients.write(session_id, "steer")
                await self._clients.send(self._machine.some(), prompt)
        else:
            self._machine.witness.accuse("P9", f"prompts stay pending: {self._waiting()}")
        self._machine.conditions.calm = False

    async def _decide(self) -> bool:
        """Decide staged reverts, and what a crash left: nothing is promoted before that."""
        staged, owed = self._machine.ledger.reverting(), self._machine.ledger.undecided()
        for session_id in owed:
            retry = self._machine.chance.random() < 0.5
            await self._clients.decide(
                self._machine.some(), session_id, "retry" if retry else "abandon"
            )
        if owed:
            await self._quiet()
        for session_id in staged:
            commit = self._machine.chance.random() < 0.5
            await self._clients.end_revert(self._machine.some(), session_id, commit=commit)
        return bool(staged)

    def _waiting(self) -> list[MessageID]:
        return [waiting.id for waiting in self._machine.ledger.waiting()]

    def _silent(self) -> list[SessionID]:
        """Sessions that were stopped, and have something to hear or to go on with."""
        ledger = self._machine.ledger
        return [*dict.fromkeys((*ledger.notices().values(), *ledger.attempts()))]

    async def _quiet(self) -> None:
        """Wait until nothing runs and nothing changes; end what would wait for ever."""
        machine = self._machine
        async with asyncio.timeout(_REST_SECONDS_MAX):
            while True:
                for process, session_id in machine.active():
                    await self._clients.answer(process, session_id, "once")
                    await self._clients.answer_question(process, session_id, give=True)
                    if machine.witness.stalled(process.name, session_id):
                        await self._clients.interrupt(process, session_id)
                before = self._written()
                await asyncio.sleep(_QUIET_SECONDS)
                if not machine.active() and self._written() == before:
                    return

    def _written(self) -> object:
        return self._machine.ledger.fetch("SELECT max(rowid) FROM event")

    async def _last_orders(self) -> None:
        """One more prompt for each Session: whatever was left behind is settled on the way."""
        await self._rest()
        for session_id in self._clients.sessions:
            if not self._broken:
                prompt = self._clients.write(session_id, "steer")
                await self._clients.send(self._machine.some(), prompt)
        if not self._broken:
            await self._rest()
        for session_id in self._clients.sessions:
            if not await self._clients.wait(self._machine.some(), session_id):
                self._machine.witness.accuse("P9", f"{session_id} is waited for, and nothing runs")


def _drawn(chance: Random) -> dict[Step, float]:
    """What this run does, and how often."""
    pace = chance.choice(_WORK_SHARES)
    usual = {step: weight * pace for step, weight in WORK} | dict(CHANGES)
    return {step: weight * chance.choice(_FREQUENCIES) for step, weight in usual.items()}


@contextmanager
def _collector_off() -> Generator[None]:
    """Finalizers must not run at moments that the collector chooses and the seed does not."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def _defects_heard(conditions: Conditions) -> Generator[list[str]]:
    """Collects what the runtime logs as an error, unless it was injected."""
    heard: list[str] = []
    handler = _Defects(heard, conditions)
    logger = logging.getLogger("perdure")
    before = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield heard
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


class _Defects(logging.Handler):
    def __init__(self, heard: list[str], conditions: Conditions) -> None:
        super().__init__(logging.ERROR)
        self._heard = heard
        self._conditions = conditions

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        expected = (
            (SimulatedDefect, InvalidRequestError, ContextBlockedError)
            if self._conditions.outage
            else SimulatedDefect
        )
        if not isinstance(error, expected):
            self._heard.append(self.format(record))
