"""The composition root: every service of a process, built in dependency order.

Services that only a running Session needs are built in runtime.app.engine on first use.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import recovery
from perdure.host import data_directory
from perdure.host.clock import SystemClock
from perdure.host.environment import Environment
from perdure.host.ids import SystemIds
from perdure.host.process_locks import ProcessLocks
from perdure.ports import Clock, IdSource
from perdure.runtime.app import startup
from perdure.runtime.app.engine_deps import EngineDeps
from perdure.runtime.app.lazy_engine import LazyEngine
from perdure.runtime.app.peer_work import PeerWork
from perdure.runtime.app.platform import Platform
from perdure.runtime.app.settings import RuntimeSettings
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.process_monitor import ProcessMonitor
from perdure.runtime.coordination.resumption import Resumption
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.database_errors import TolerateFailure
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.ops.health import HealthReport
from perdure.runtime.ops.metrics import Metrics
from perdure.runtime.session.changes import SessionChanges
from perdure.runtime.session.command import SessionCommands
from perdure.runtime.session.deletion import SessionDeletions
from perdure.runtime.session.fork import SessionForks
from perdure.runtime.session.inbox import SessionInbox
from perdure.runtime.session.recovery import SessionRecovery
from perdure.runtime.session.sessions import Sessions, SessionServices
from perdure.runtime.session.shell import SessionShells
from perdure.runtime.session.snapshots import SessionSnapshots
from perdure.runtime.session.todos import SessionTodos
from perdure.runtime.session.tree import SessionChildren
from perdure.runtime.session.usage import SessionUsages
from perdure.runtime.tasks import Background
from perdure.schema.ids import SessionID
from perdure.schema.live_event import InstanceDisposed, StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.session.status import SessionBusy, SessionIdle, SessionStatus
from perdure.schema.value import Value
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import EventStore
from perdure.store.log.follow import EventFollowers
from perdure.store.tables.pending_table import PendingRequests

if TYPE_CHECKING:
    from perdure.runtime.background.jobs import Jobs
    from perdure.runtime.background.notices import Notices
    from perdure.runtime.files.session_diff import SessionDiffs
    from perdure.runtime.human.permissions import Permissions
    from perdure.runtime.human.questions import Questions
    from perdure.runtime.locations.api import Files, Locations
    from perdure.runtime.locations.integrations import Integrations
    from perdure.runtime.locations.mcp import McpServersOfLocations
    from perdure.runtime.locations.projects import ProjectList
    from perdure.runtime.locations.session_servers import SessionServers
    from perdure.runtime.locations.terminals import Terminals
    from perdure.runtime.locations.vcs import VersionControl
    from perdure.runtime.plugins.plugins import Plugins
    from perdure.tools.api.registry import ToolRegistry


class Runtime(Value, kw_only=True):
    """A running instance. Its scope releases everything when it ends.

    Reading one of the properties loads the engine.
    """

    health: HealthReport
    sessions: Sessions
    changes: SessionChanges
    forks: SessionForks
    deletions: SessionDeletions
    snapshots: SessionSnapshots
    shells: SessionShells
    commands: SessionCommands
    inbox: SessionInbox
    todos: SessionTodos
    children: SessionChildren
    usage: SessionUsages
    recovery: SessionRecovery
    hub: LiveHub
    store: EventStore
    followers: EventFollowers
    session_locations: SessionLocations
    coordinator: RunCoordinator
    activity: SessionActivity
    engine: LazyEngine
    clock: Clock
    ids: IdSource
    environment: Environment
    database_path: str

    @property
    def notices(self) -> "Notices":
        return self.engine.get().notices

    @property
    def jobs(self) -> "Jobs":
        return self.engine.get().jobs

    @property
    def locations(self) -> "Locations":
        return self.engine.get().locations

    @property
    def files(self) -> "Files":
        return self.engine.get().files

    @property
    def vcs(self) -> "VersionControl":
        return self.engine.get().vcs

    @property
    def projects(self) -> "ProjectList":
        return self.engine.get().projects

    @property
    def session_diffs(self) -> "SessionDiffs":
        return self.engine.get().session_diffs

    @property
    def terminals(self) -> "Terminals":
        return self.engine.get().terminals

    @property
    def permissions(self) -> "Permissions":
        return self.engine.get().permissions

    @property
    def questions(self) -> "Questions":
        return self.engine.get().questions

    @property
    def integrations(self) -> "Integrations":
        return self.engine.get().integrations

    @property
    def mcp(self) -> "McpServersOfLocations":
        return self.engine.get().mcp

    @property
    def session_servers(self) -> "SessionServers":
        return self.engine.get().session_servers

    @property
    def tools(self) -> "ToolRegistry":
        """The tools of the whole application, offered in every Location."""
        return self.engine.get().tools

    @property
    def plugins(self) -> "Plugins":
        return self.engine.get().plugins


@asynccontextmanager
async def open_runtime(
    settings: RuntimeSettings, *, clock: Clock | None = None, ids: IdSource | None = None
) -> AsyncGenerator[Runtime]:
    """Open a runtime on the data directory: migrate it, lock it, and resume pending work."""
    async with AsyncExitStack() as stack:
        clock = clock or SystemClock()
        ids = ids or SystemIds(clock)
        path = data_directory.prepare(settings.data_dir)
        migrate.migrate(path)
        directory = f"{settings.data_dir}/{data_directory.PROCESSES_NAME}"
        processes = stack.enter_context(ProcessLocks(directory, ids.named("prc")))
        metrics = Metrics(settings.telemetry)
        database = await stack.enter_async_context(
            SqliteDatabase(path, observe=partial(metrics.observe, "commit"))
        )
        if settings.local_models:
            # Brings the HTTP client, which nothing else needs at start.
            from perdure.runtime.app.local_providers import find_local_providers

            found = await find_local_providers(settings.environment)
            settings = replace(settings, providers=(*settings.providers, *found))
        platform = Platform(
            database=database,
            processes=processes,
            clock=clock,
            ids=ids,
            chance=Random(),
            metrics=metrics,
            children_directory=directory,
        )
        background = await stack.enter_async_context(Background())
        background.start(metrics.watch_loop(), name="loop lag")
        if settings.watchdog is not None:
            stack.enter_context(settings.watchdog.watching(partial(metrics.count, "loop.stalled")))
        background.start(startup.beat(processes, clock), name="beat")
        yield await stack.enter_async_context(compose(settings, platform, path))
        await background.stop()


@asynccontextmanager
async def compose(
    settings: RuntimeSettings, platform: Platform, database_path: str
) -> AsyncGenerator[Runtime]:
    """Build a runtime on a platform, and run its background tasks until the scope ends."""
    requests = PendingRequests(platform.database, platform.processes)
    runtime = _build_runtime(settings, platform, requests, database_path)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runtime.engine.aclose)
        background = await stack.enter_async_context(Background())
        _start_background(runtime, settings, platform, background)
        try:
            yield runtime
        finally:
            await background.stop()
            if settings.finishes:
                await runtime.coordinator.finish(limits.FINISH_SECONDS_MAX)
            await runtime.coordinator.close(
                grace_seconds=settings.grace_seconds, parked=runtime.engine.suspend_requests
            )
            runtime.hub.publish(InstanceDisposed(), None)
            runtime.hub.close()
            # On a full disk the rows stay: those of a dead process count for nothing anyway.
            with TolerateFailure("leases are not given back"):
                await runtime.store.leases.release_all()


def _build_runtime(
    settings: RuntimeSettings, platform: Platform, requests: PendingRequests, database_path: str
) -> Runtime:
    clock, store, hub = platform.clock, _build_store(platform), LiveHub(platform.ids)
    store.listen(hub.publish_stored, live=True)
    followers = EventFollowers(store)
    locations = SessionLocations(store)
    engine = LazyEngine()
    status = partial(_publish_status, hub=hub, engine=engine)
    coordinator = RunCoordinator(engine.drain, status=status)
    activity = SessionActivity(store, coordinator, clock, resumes=settings.resumes != "none")
    services = SessionServices(
        store=store,
        tails=followers,
        coordinator=coordinator,
        activity=activity,
        engine=engine.get,
        known=locations,
        clock=clock,
        ids=platform.ids,
        default_location=LocationRef(directory=settings.default_directory),
    )
    sessions = Sessions(services)
    engine.connect(
        _build_engine_deps(
            settings, platform, services, sessions=sessions, hub=hub, requests=requests
        )
    )
    deletions = SessionDeletions(
        store, followers, coordinator, activity, clock=clock, engine=engine
    )
    return Runtime(
        health=_build_health(platform, coordinator, database_path),
        sessions=sessions,
        changes=SessionChanges(store, coordinator, clock),
        forks=SessionForks(store, locations, clock, platform.ids),
        deletions=deletions,
        snapshots=SessionSnapshots(platform.database),
        shells=SessionShells(services, sessions),
        commands=SessionCommands(sessions, engine.get),
        inbox=SessionInbox(store, coordinator, clock),
        todos=SessionTodos(store),
        children=SessionChildren(platform.database),
        usage=SessionUsages(store, clock),
        recovery=SessionRecovery(store, coordinator),
        hub=hub,
        store=store,
        followers=followers,
        session_locations=locations,
        coordinator=coordinator,
        activity=activity,
        engine=engine,
        clock=clock,
        ids=platform.ids,
        environment=settings.environment,
        database_path=database_path,
    )


def _build_engine_deps(
    settings: RuntimeSettings,
    platform: Platform,
    services: SessionServices,
    *,
    sessions: Sessions,
    hub: LiveHub,
    requests: PendingRequests,
) -> EngineDeps:
    return EngineDeps(
        settings=settings,
        platform=platform,
        store=services.store,
        hub=hub,
        sessions=sessions,
        coordinator=services.coordinator,
        activity=services.activity,
        pending=requests,
    )


def _build_store(platform: Platform) -> EventStore:
    return EventStore(
        platform.database,
        platform.ids,
        platform.processes,
        piece_events_max=platform.piece_events_max,
    )


def _build_health(
    platform: Platform, coordinator: RunCoordinator, database_path: str
) -> HealthReport:
    return HealthReport(
        platform.database,
        database_path,
        coordinator,
        platform.metrics,
        silent=platform.processes.silent,
        started=platform.clock.now_millis(),
    )


def _start_background(
    runtime: Runtime, settings: RuntimeSettings, platform: Platform, background: Background
) -> None:
    """Start the tasks that follow the other processes on the same store, and resume work."""
    processes, clock, coordinator = platform.processes, platform.clock, runtime.coordinator
    peer_work = PeerWork(
        runtime.store,
        runtime.hub,
        processes,
        activity=runtime.activity,
        engine=runtime.engine,
        resumption=Resumption(settings.resumes, settings.default_directory),
    )
    monitor = ProcessMonitor(
        runtime.store,
        runtime.followers,
        coordinator,
        requests=peer_work,
        known=runtime.session_locations,
        processes=processes,
        clock=clock,
    )
    background.start(monitor.run(), name="processes")
    if settings.resumes == "none":
        return
    resume = startup.resume_work(peer_work, coordinator, platform)
    background.start(resume, name="boot")
    background.start(startup.adopt_jobs(peer_work, clock), name="background jobs")
    background.start(startup.finish_deletions(runtime.deletions, clock), name="deletions")
    background.start(startup.sweep_files(runtime.engine, clock), name="tool output sweep")


def _publish_status(
    session_id: SessionID, status: str, message: str | None, *, hub: LiveHub, engine: LazyEngine
) -> None:
    shown: SessionStatus = SessionIdle()
    if status == "running":
        shown = SessionBusy()
    elif status == "failed":
        shown = SessionIdle(outcome="failed", message=message or UNSET)
    elif (reason := engine.wait_reason(session_id)) is not None:
        shown = SessionIdle(outcome="waiting", reason=reason, message=recovery.WAITING[reason])
    hub.publish(StatusChanged(session_id=session_id, status=shown), None)


__all__ = ["Platform", "Runtime", "RuntimeSettings", "compose", "open_runtime"]
