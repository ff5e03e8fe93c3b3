"""The composition root: everything is joined here, in dependency order, and nowhere else.

What only a running Session needs is joined in runtime.engine, and loaded when it is first used.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from perdure.core import limits
from perdure.host import data_directory
from perdure.host.clock import SystemClock
from perdure.host.ids import SystemIds
from perdure.host.neighbours import ProcessLocks
from perdure.ports import Clock, DatabaseError, IdSource
from perdure.runtime.concurrency import Background
from perdure.runtime.known_sessions import KnownSessions
from perdure.runtime.late import late
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.neighbour_watch import NeighbourWatch
from perdure.runtime.parts import Foundations, Parts, RuntimeSettings
from perdure.runtime.run_coordinator import RunCoordinator
from perdure.runtime.sessions import Sessions, SessionServices
from perdure.schema.ids import SessionID
from perdure.schema.live_event import InstanceDisposed, StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.store import inbox_table, migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.event_store import EventStore
from perdure.store.tail import EventTails

if TYPE_CHECKING:
    from perdure.runtime.engine import Engine
    from perdure.runtime.locations import Locations
    from perdure.runtime.permissions import Permissions
    from perdure.runtime.plugins import Plugins
    from perdure.runtime.questions import Questions
    from perdure.tools.registry import ToolRegistry


logger = logging.getLogger(__name__)


class Runtime(Value, kw_only=True):
    """A running instance. Everything is released when its scope ends."""

    sessions: Sessions
    locations: "Locations"
    permissions: "Permissions"
    questions: "Questions"
    hub: LiveHub
    store: EventStore
    tools: "ToolRegistry"
    """Tools of the whole application, below those of every Location."""
    plugins: "Plugins"
    clock: Clock
    ids: IdSource
    database_path: str


@asynccontextmanager
async def open_runtime(settings: RuntimeSettings) -> AsyncGenerator[Runtime]:
    """A runtime on the data directory: migrated, locked, awake."""
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        ids = SystemIds(clock)
        path = data_directory.prepare(settings.data_dir)
        migrate.migrate(path)
        locks = ProcessLocks(f"{settings.data_dir}/processes", ids.named("prc"))
        neighbours = stack.enter_context(locks)
        database = await stack.enter_async_context(SqliteDatabase(path))
        if settings.local_models:
            local_providers = import_module("perdure.runtime.local_providers")
            found = await local_providers.find(settings.environment)
            settings = replace(settings, providers=(*settings.providers, *found))
        foundations = Foundations(database=database, neighbours=neighbours, clock=clock, ids=ids)
        yield await stack.enter_async_context(compose(settings, foundations, path))


@asynccontextmanager
async def compose(
    settings: RuntimeSettings, on: Foundations, database_path: str
) -> AsyncGenerator[Runtime]:
    """Everything above the foundations."""
    store = EventStore(on.database, on.ids, on.neighbours)
    hub = LiveHub(on.ids)
    store.listen(hub.publish_stored, live=True)
    tails = EventTails(store)
    known = KnownSessions(store)
    engine = EngineRoom()
    coordinator = RunCoordinator(engine.drain, status=partial(_tell_status, hub))
    sessions = Sessions(
        SessionServices(
            store=store,
            tails=tails,
            locations=late(lambda: engine.get().locations),
            coordinator=coordinator,
            compactor=late(lambda: engine.get().compactor),
            moves=late(lambda: engine.get().moves),
            provider_contexts=late(lambda: engine.get().provider_contexts),
            known=known,
            clock=on.clock,
            ids=on.ids,
            default_location=LocationRef(directory=settings.default_directory),
        )
    )
    engine.parts = Parts(
        settings=settings,
        on=on,
        store=store,
        hub=hub,
        sessions=sessions,
        wake=coordinator.wake,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(engine.aclose)
        background = await stack.enter_async_context(Background())
        watch = NeighbourWatch(
            store,
            tails,
            coordinator,
            unfinished=engine.unfinished,
            known=known,
            neighbours=on.neighbours,
            clock=on.clock,
        )
        if settings.resumes:
            background.start(watch.run(), name="neighbours")
            background.start(_wake_at_boot(engine, coordinator), name="boot")
            background.start(_sweep(engine, on.clock), name="tool output sweep")
        try:
            yield Runtime(
                sessions=sessions,
                locations=late(lambda: engine.get().locations),
                permissions=late(lambda: engine.get().permissions),
                questions=late(lambda: engine.get().questions),
                hub=hub,
                store=store,
                tools=late(lambda: engine.get().tools),
                plugins=late(lambda: engine.get().plugins),
                clock=on.clock,
                ids=on.ids,
                database_path=database_path,
            )
        finally:
            await background.stop()
            await coordinator.close()
            hub.publish(InstanceDisposed(), None)
            hub.close()
            # On a full disk they stay behind: a process that is gone holds nothing anyway.
            with suppress(DatabaseError):
                await store.release_all()


class EngineRoom:
    """Holds the engine once it has been needed."""

    parts: Parts

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def get(self) -> "Engine":
        if self._engine is None:
            module = import_module("perdure.runtime.engine")
            self._engine = cast("Engine", module.Engine(self.parts))
        return self._engine

    async def drain(self, session_id: SessionID, force: bool) -> None:
        await self.get().runner.drain(session_id, force)

    async def unfinished(self) -> list[SessionID]:
        """Sessions that a dead process left in the middle of something."""
        if not await self.parts.store.left_behind():
            return []
        return await self.get().tenures.unfinished()

    async def aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()


def _tell_status(hub: LiveHub, session_id: SessionID, status: str, message: str | None) -> None:
    shown = {"type": status} | ({} if message is None else {"message": message})
    hub.publish(StatusChanged(session_id=session_id, status=shown), None)


async def _sweep(engine: EngineRoom, clock: Clock) -> None:
    """Later, when nobody waits for the start any more; it also has the engine ready by then."""
    await clock.sleep(limits.WARM_UP_SECONDS)
    await engine.get().outputs.sweep()


async def _wake_at_boot(engine: EngineRoom, coordinator: RunCoordinator) -> None:
    """Run what was admitted before the last stop, settle what a crash cut off; a few at a time."""
    waiting = iter(await _left_at_boot(engine))

    async def worker() -> None:
        for session_id in waiting:
            coordinator.wake(session_id)
            await coordinator.idle(session_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(limits.BOOT_WAKES_PARALLEL_MAX):
            group.create_task(worker())


async def _left_at_boot(engine: EngineRoom) -> list[SessionID]:
    """Tried until it can be read: nobody would ask for these Sessions again."""
    on = engine.parts.on
    while True:
        try:
            pending = await on.database.read(inbox_table.sessions_with_pending)
            return list(dict.fromkeys((*pending, *await engine.unfinished())))
        except DatabaseError as error:
            logger.warning("cannot look for work that was left: %s", error)
        await on.clock.sleep(limits.STORAGE_RETRY_SECONDS)


__all__ = ["Foundations", "Runtime", "RuntimeSettings", "compose", "open_runtime"]
