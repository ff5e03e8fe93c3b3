"""The composition root: everything is joined here, in dependency order, and nowhere else.

What only a running Session needs is joined in runtime.app.engine, and loaded when it is first used.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure.core.session import recovery
from perdure.host import data_directory
from perdure.host.clock import SystemClock
from perdure.host.ids import SystemIds
from perdure.host.process_locks import ProcessLocks
from perdure.ports import Clock, IdSource
from perdure.runtime.app import startup
from perdure.runtime.app.late import late
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.runtime.app.parts import EngineDeps, Platform, RuntimeSettings
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.process_monitor import ProcessMonitor
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.database_errors import TolerateFailure
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.ops.health import HealthReport
from perdure.runtime.ops.metrics import Metrics
from perdure.runtime.session.changes import SessionChanges
from perdure.runtime.session.children import SessionChildren
from perdure.runtime.session.deletion import SessionDeletions
from perdure.runtime.session.fork import SessionForks
from perdure.runtime.session.inbox import SessionInbox
from perdure.runtime.session.recovery import SessionRecovery
from perdure.runtime.session.sessions import Sessions, SessionServices
from perdure.runtime.session.snapshots import SessionSnapshots
from perdure.runtime.session.todos import SessionTodos
from perdure.runtime.session.usage import SessionUsages
from perdure.runtime.tasks import Background
from perdure.schema.ids import SessionID
from perdure.schema.live_event import InstanceDisposed, StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.tables.pending_table import PendingRequests

if TYPE_CHECKING:
    from perdure.runtime.background.jobs import Jobs
    from perdure.runtime.background.notices import Notices
    from perdure.runtime.human.permissions import Permissions
    from perdure.runtime.human.questions import Questions
    from perdure.runtime.locations.api import Files, Locations
    from perdure.runtime.locations.integrations import Integrations
    from perdure.runtime.locations.terminals import Terminals
    from perdure.runtime.plugins.plugins import Plugins
    from perdure.tools.api.registry import ToolRegistry


logger = logging.getLogger(__name__)


class Runtime(Value, kw_only=True):
    """A running instance. Everything is released when its scope ends."""

    health: HealthReport
    sessions: Sessions
    changes: SessionChanges
    forks: SessionForks
    deletions: SessionDeletions
    snapshots: SessionSnapshots
    inbox: SessionInbox
    todos: SessionTodos
    children: SessionChildren
    usage: SessionUsages
    recovery: SessionRecovery
    notices: "Notices"
    jobs: "Jobs"
    locations: "Locations"
    files: "Files"
    terminals: "Terminals"
    permissions: "Permissions"
    questions: "Questions"
    integrations: "Integrations"
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
        processes = stack.enter_context(locks)
        measures = Metrics(settings.telemetry)
        database = await stack.enter_async_context(
            SqliteDatabase(path, observe=partial(measures.observe, "commit"))
        )
        if settings.local_models:
            local_providers = import_module("perdure.runtime.app.local_providers")
            found = await local_providers.find(settings.environment)
            settings = replace(settings, providers=(*settings.providers, *found))
        foundations = Platform(
            database=database,
            processes=processes,
            clock=clock,
            ids=ids,
            chance=Random(),
            measures=measures,
        )
        background = await stack.enter_async_context(Background())
        background.start(measures.watch_loop(), name="loop lag")
        yield await stack.enter_async_context(compose(settings, foundations, path))
        await background.stop()


@asynccontextmanager
async def compose(
    settings: RuntimeSettings, on: Platform, database_path: str
) -> AsyncGenerator[Runtime]:
    """Everything above the foundations."""
    core = _core(settings, on)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(core.engine.aclose)
        background = await stack.enter_async_context(Background())
        if settings.resumes:
            background.start(_watch(core, on).run(), name="processes")
            background.start(startup.wake_at_boot(core.engine, core.coordinator), name="boot")
            background.start(startup.adopt_jobs(core.engine, on.clock), name="background jobs")
            background.start(startup.finish_deletions(core.deletions, on.clock), name="deletions")
            background.start(startup.sweep(core.engine, on.clock), name="tool output sweep")
        try:
            yield _runtime(core, on, database_path)
        finally:
            await background.stop()
            await core.coordinator.close()
            core.hub.publish(InstanceDisposed(), None)
            core.hub.close()
            # On a full disk they stay behind: a process that is gone holds nothing anyway.
            with TolerateFailure("leases and open requests are not given back"):
                await core.store.leases.release_all()
                await core.engine.parts.pending.remove_own()


class _Core(Value, kw_only=True):
    """What reads, admits and coordinates; the engine stands behind it, not yet loaded."""

    store: EventStore
    hub: LiveHub
    tails: EventFollowers
    known: SessionLocations
    engine: LazyEngine
    coordinator: RunCoordinator
    sessions: Sessions
    deletions: SessionDeletions


def _core(settings: RuntimeSettings, on: Platform) -> _Core:
    store = EventStore(on.database, on.ids, on.processes)
    hub = LiveHub(on.ids)
    store.listen(hub.publish_stored, live=True)
    tails = EventFollowers(store)
    known = SessionLocations(store)
    engine = LazyEngine()
    coordinator = RunCoordinator(engine.drain, status=partial(_tell_status, hub=hub, engine=engine))
    sessions = Sessions(
        SessionServices(
            store=store,
            tails=tails,
            locations=late(lambda: engine.get().open_locations.locations),
            coordinator=coordinator,
            compactor=late(lambda: engine.get().runs.compactor),
            moves=late(lambda: engine.get().open_locations.moves),
            reverted_files=late(lambda: engine.get().reverted_files),
            provider_contexts=late(lambda: engine.get().runs.provider_contexts),
            known=known,
            clock=on.clock,
            ids=on.ids,
            default_location=LocationRef(directory=settings.default_directory),
        )
    )
    engine.parts = EngineDeps(
        settings=settings,
        on=on,
        store=store,
        hub=hub,
        sessions=sessions,
        coordinator=coordinator,
        wake=coordinator.wake,
        closing=lambda: coordinator.closing,
        pending=PendingRequests(on.database, on.processes),
    )
    return _Core(
        store=store,
        hub=hub,
        tails=tails,
        known=known,
        engine=engine,
        coordinator=coordinator,
        sessions=sessions,
        deletions=SessionDeletions(
            store,
            tails,
            coordinator,
            on.clock,
            outputs=late(lambda: engine.get().outputs),
            end_jobs=engine.end_jobs,
        ),
    )


def _watch(core: _Core, on: Platform) -> ProcessMonitor:
    return ProcessMonitor(
        core.store,
        core.tails,
        core.coordinator,
        unfinished=core.engine.unfinished,
        requests=core.engine,
        known=core.known,
        processes=on.processes,
        clock=on.clock,
    )


def _runtime(core: _Core, on: Platform, database_path: str) -> Runtime:
    store, coordinator, engine = core.store, core.coordinator, core.engine
    return Runtime(
        health=HealthReport(
            on.database, database_path, coordinator, on.measures, started=on.clock.now_millis()
        ),
        sessions=core.sessions,
        changes=SessionChanges(store, coordinator, on.clock),
        forks=SessionForks(store, core.known, on.clock, on.ids),
        deletions=core.deletions,
        snapshots=SessionSnapshots(on.database),
        inbox=SessionInbox(store, coordinator, on.clock),
        todos=SessionTodos(store),
        children=SessionChildren(on.database),
        usage=SessionUsages(store, on.clock),
        recovery=SessionRecovery(store, coordinator),
        notices=late(lambda: engine.get().side_work.notices),
        jobs=late(lambda: engine.get().side_work.jobs),
        locations=late(lambda: engine.get().open_locations.locations),
        files=late(lambda: engine.get().open_locations.files),
        terminals=late(lambda: engine.get().open_locations.terminals),
        permissions=late(lambda: engine.get().open_locations.permissions),
        questions=late(lambda: engine.get().open_locations.questions),
        integrations=late(lambda: engine.get().open_locations.integrations),
        hub=core.hub,
        store=store,
        tools=late(lambda: engine.get().plugins.registries.tools),
        plugins=late(lambda: engine.get().plugins),
        clock=on.clock,
        ids=on.ids,
        database_path=database_path,
    )


def _tell_status(
    session_id: SessionID, status: str, message: str | None, *, hub: LiveHub, engine: LazyEngine
) -> None:
    shown = {"type": status} | ({} if message is None else {"message": message})
    if status == "idle" and (reason := engine.waits(session_id)) is not None:
        shown = {"type": "waiting", "reason": reason, "message": recovery.WAITING[reason]}
    hub.publish(StatusChanged(session_id=session_id, status=shown), None)


__all__ = ["Platform", "Runtime", "RuntimeSettings", "compose", "open_runtime"]
