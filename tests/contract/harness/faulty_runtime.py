"""A whole runtime on a database that fails when a test says so, and a model that it scripts."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.models.catalog import host_provider
from perdure.core.models.provider_limits import NO_LIMITS, ProviderLimits
from perdure.host import environment
from perdure.host.process_locks import SingleProcess
from perdure.llm.model_call import ModelCall
from perdure.ports import Processes
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.testing import ManualClock, ScriptedModel, SeededIds
from tests.harness.checkers import grammar
from tests.harness.faults.database import DatabasePlan, FaultyDatabase

PATIENCE_SECONDS = 10
MODEL = ModelRef(id="scripted", provider_id="test")
ALONE = SingleProcess()
NO_CALLS: Mapping[str, ModelCall] = {}


@dataclass(frozen=True, slots=True)
class Stage:
    runtime: Runtime
    database: FaultyDatabase
    model: ScriptedModel
    clock: ManualClock

    async def log(self, session_id: SessionID) -> list[SessionEvent]:
        found = await self.runtime.store.read(session_id, limit=100_000)
        return [event for _, _, event in found]

    async def at_rest(self, session_id: SessionID) -> list[SessionEvent]:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.runtime.sessions.wait(session_id)
        log = await self.log(session_id)
        faults = grammar.check_log(log)
        assert not faults, faults
        return log


@asynccontextmanager
async def staged(
    root: Path,
    *,
    seed: int = 0,
    processes: Processes = ALONE,
    plan: DatabasePlan | None = None,
    answers: ModelCall | None = None,
    calls: Mapping[str, ModelCall] = NO_CALLS,
    piece_events_max: int = limits.APPEND_EVENTS_MAX,
    allowed: ProviderLimits = NO_LIMITS,
) -> AsyncGenerator[Stage]:
    """On a real file below `root`; opened again, it is the same store.

    `answers` is asked in place of the scripted model; `calls` are further models; `allowed` are
    the limits of their provider.
    """
    (root / "project").mkdir(parents=True, exist_ok=True)
    path = str(root / "perdure.db")
    migrate.migrate(path)
    clock, model = ManualClock(), ScriptedModel()
    provider = host_provider("test", {"scripted": answers or model, **calls})
    settings = RuntimeSettings(
        environment=environment.from_variables(
            {"HOME": str(root), "TMPDIR": str(root), "PERDURE_TRUSTED": "*"}
        ),
        data_dir=str(root),
        default_directory=str(root / "project"),
        providers=(replace(provider, limits=allowed),),
    )
    async with SqliteDatabase(path) as real:
        database = FaultyDatabase(real, plan, clock=clock)
        foundations = Platform(
            database=database,
            processes=processes,
            clock=clock,
            ids=SeededIds(seed),
            piece_events_max=piece_events_max,
        )
        async with compose(settings, foundations, path) as runtime:
            yield Stage(runtime, database, model, clock)


def settlements(log: list[SessionEvent]) -> tuple[int, int]:
    """How many steps were begun, and how many ends of steps are recorded."""
    begun = sum(isinstance(event, events.StepStarted) for event in log)
    ended = sum(isinstance(event, events.StepEnded | events.StepFailed) for event in log)
    return begun, ended
