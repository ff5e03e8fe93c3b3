"""Configured limits of a provider hold for all Sessions, children and processes of one store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core.models.catalog import host_provider
from perdure.core.models.provider_limits import ProviderLimits
from perdure.core.settings.settings import Settings
from perdure.host.http.client import HttptoolsTransport
from perdure.host.process_locks import SingleProcess
from perdure.llm.event import Finish, LLMEvent, Usage
from perdure.llm.request import LLMRequest
from perdure.location.models.catalog import Catalog, ResolvedModel
from perdure.ports import Database
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.ops.provider_slots import ProviderSlots
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ManualClock, SeededIds
from perdure.testing.scripted_model import Pause, text
from tests.contract.harness.faulty_runtime import MODEL, PATIENCE_SECONDS, Stage, staged
from tests.harness.faults.database import DatabaseFault, DatabasePlan, FaultyDatabase

REF = ModelRef(id="m", provider_id="p")
REQUEST = LLMRequest(model=REF, system=(), segments=())
ONE_AT_ONCE = ProviderLimits(concurrent=1)
LOOK = 0.25


class NamedProcess(SingleProcess):
    """One of several processes on a store; `living` is shared by all of them."""

    def __init__(self, name: str, living: set[str]) -> None:
        self._name = name
        self._living = living
        living.add(name)

    @property
    def me(self) -> str:
        return self._name

    def alive(self, process: str) -> bool:
        return process in self._living


class Held:
    """A model that answers when it is told to, and knows how many requests are there at once."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.total = 0
        self.answer = asyncio.Event()

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        try:
            await self.answer.wait()
            yield (Finish("stop", Usage(input=70, output=20, reasoning=10)),)
        finally:
            self.now -= 1


def resolved(call: Held, allowed: ProviderLimits) -> ResolvedModel:
    provider = replace(host_provider("p", {"m": call}), limits=allowed)
    catalog = Catalog(
        Settings(),
        variables={},
        transport=HttptoolsTransport(),
        clock=ManualClock(),
        host_providers=(provider,),
    )
    found = catalog.resolve(REF)
    assert isinstance(found, ResolvedModel)
    return found


@asynccontextmanager
async def opened(root: Path) -> AsyncGenerator[Database]:
    path = str(root / "perdure.db")
    migrate.migrate(path)
    async with SqliteDatabase(path) as database:
        yield database


async def ask(slots: ProviderSlots, model: ResolvedModel, tokens: int = 10) -> None:
    async for _ in slots.limited(model, tokens=tokens)(REQUEST):
        pass


async def until_asleep(clock: ManualClock, count: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await clock.until_sleeps(count)


async def test_requests_of_all_processes_count_together(tmp_path: Path) -> None:
    living: set[str] = set()
    clock, call = ManualClock(), Held()
    model = resolved(call, ProviderLimits(concurrent=2))
    async with opened(tmp_path) as first, opened(tmp_path) as second, asyncio.timeout(20):
        all_slots = [
            ProviderSlots(database, NamedProcess(name, living), clock, LiveHub(SeededIds(0)))
            for name, database in (("one", first), ("two", second))
        ]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ask(slots, model)) for _ in range(10) for slots in all_slots]
            while not all(task.done() for task in asked):
                clock.advance(LOOK)
                await asyncio.sleep(0)
                if call.now == 2:
                    call.answer.set()
        assert (call.total, call.now) == (20, 0)
        assert call.most == 2


async def test_a_dead_process_frees_its_slots(tmp_path: Path) -> None:
    living: set[str] = set()
    clock, call = ManualClock(), Held()
    model = resolved(call, ONE_AT_ONCE)
    async with opened(tmp_path) as database, asyncio.timeout(PATIENCE_SECONDS):
        dead = ProviderSlots(database, NamedProcess("dead", living), clock, LiveHub(SeededIds(0)))
        slots = ProviderSlots(database, NamedProcess("here", living), clock, LiveHub(SeededIds(0)))
        async with dead.take(model, tokens=1):
            waiting = asyncio.create_task(ask(slots, model))
            await until_asleep(clock, 1)
            living.remove("dead")
            call.answer.set()
            clock.advance(LOOK)
            await waiting


async def test_tokens_are_counted_as_the_provider_counted_them(tmp_path: Path) -> None:
    clock, call = ManualClock(), Held()
    call.answer.set()
    model = resolved(call, ProviderLimits(tokens=150))
    async with opened(tmp_path) as database, asyncio.timeout(PATIENCE_SECONDS):
        slots = ProviderSlots(database, SingleProcess(), clock, LiveHub(SeededIds(0)))
        # Estimated as 10, counted as 100.
        await ask(slots, model)
        waiting = asyncio.create_task(ask(slots, model, tokens=60))
        await until_asleep(clock, 1)
        for _ in range(11):
            clock.advance(5)
            await until_asleep(clock, len(clock.sleeps) + 1)
        assert (clock.sleeps, waiting.done()) == ([5.0] * 12, False)
        clock.advance(5)
        await waiting


async def test_an_interrupt_while_the_slot_is_stored_gives_it_back(tmp_path: Path) -> None:
    clock, call = ManualClock(), Held()
    call.answer.set()
    model = resolved(call, ONE_AT_ONCE)
    async with opened(tmp_path) as database, asyncio.timeout(PATIENCE_SECONDS):
        slots = ProviderSlots(database, SingleProcess(), clock, LiveHub(SeededIds(0)))
        for steps in range(12):
            asked = asyncio.create_task(ask(slots, model))
            for _ in range(steps):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
        await ask(slots, model)
        assert clock.sleeps == []


async def test_an_end_that_cannot_be_stored_is_stored_with_the_next_request(
    tmp_path: Path,
) -> None:
    clock, call = ManualClock(), Held()
    call.answer.set()
    model = resolved(call, ONE_AT_ONCE)
    async with opened(tmp_path) as database, asyncio.timeout(PATIENCE_SECONDS):
        plan = DatabasePlan(writes={2: DatabaseFault(fails="before")})
        faulty = FaultyDatabase(database, plan, clock=clock)
        slots = ProviderSlots(faulty, SingleProcess(), clock, LiveHub(SeededIds(0)))
        await ask(slots, model)
        assert faulty.failed == 1
        await ask(slots, model)
        assert clock.sleeps == []


async def test_without_limits_nothing_is_stored(tmp_path: Path) -> None:
    clock, call = ManualClock(), Held()
    call.answer.set()
    async with opened(tmp_path) as database:
        faulty = FaultyDatabase(database, clock=clock)
        slots = ProviderSlots(faulty, SingleProcess(), clock, LiveHub(SeededIds(0)))
        await ask(slots, resolved(call, ProviderLimits()))
        assert (faulty.reads, faulty.writes) == (0, 0)


# ---- in a whole runtime -------------------------------------------------------------------------

FIRST, SECOND = SessionID("ses_first"), SessionID("ses_second")


async def prompt(stage: Stage, session: SessionID) -> None:
    await stage.runtime.sessions.create(id=session, model=MODEL)
    await stage.runtime.sessions.prompt(session, PromptInput(text="go"))


async def test_a_session_that_waits_for_its_slot_says_so_and_goes_on(tmp_path: Path) -> None:
    async with staged(tmp_path, allowed=ONE_AT_ONCE) as stage:
        held = Pause()
        stage.model.turn(held, text("one")).turn(text("two"))
        with stage.runtime.hub.subscribe() as reader:
            await prompt(stage, FIRST)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await held.reached.wait()
            await prompt(stage, SECOND)
            seen = b""
            async with asyncio.timeout(PATIENCE_SECONDS):
                while b'"type":"retry"' not in seen:
                    seen += await reader.next() or b""
        assert b"The configured limits of test are reached" in seen
        assert len(stage.model.requests) == 1
        held.release()
        await stage.at_rest(FIRST)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not stage.model.requests[1:]:
                stage.clock.advance(LOOK)
                await asyncio.sleep(0)
        assert isinstance((await stage.at_rest(SECOND))[-1], events.StepEnded)


@pytest.mark.parametrize("ends", ["interrupt", "restart"])
async def test_a_request_that_waits_for_its_slot_was_not_sent(tmp_path: Path, ends: str) -> None:
    async with staged(tmp_path, allowed=ONE_AT_ONCE) as stage:
        held = Pause()
        stage.model.turn(held, text("one"))
        await prompt(stage, FIRST)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await held.reached.wait()
            await prompt(stage, SECOND)
            while LOOK not in stage.clock.sleeps:
                await stage.clock.until_sleeps(len(stage.clock.sleeps) + 1)
        if ends == "interrupt":
            async with asyncio.timeout(PATIENCE_SECONDS):
                await stage.runtime.sessions.interrupt(SECOND)
            log = await stage.at_rest(SECOND)
            assert isinstance(log[-1], events.StepFailed)
            return
    async with staged(tmp_path, seed=1, allowed=ONE_AT_ONCE) as stage:
        stage.model.turn(text("two")).turn(text("three"))
        log = await stage.at_rest(SECOND)
        assert isinstance(log[-1], events.StepEnded)
