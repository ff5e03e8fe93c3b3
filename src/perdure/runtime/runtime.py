"""The composition root: everything is joined here, in dependency order, and nowhere else."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.catalog import CatalogProvider
from perdure.host import data_directory, http_proxy
from perdure.host.clock import SystemClock
from perdure.host.environment import Environment
from perdure.host.filesystem import LocalFilesystem
from perdure.host.http import HttptoolsTransport
from perdure.host.ids import SystemIds
from perdure.host.neighbours import ProcessLocks
from perdure.host.process import LocalProcesses, find_ripgrep
from perdure.location.builtin_tools import OUTPUT_DIRECTORY, BuiltinTools
from perdure.location.config import Configuration
from perdure.location.location_map import LocationMap
from perdure.location.permissions import Headless
from perdure.location.project import Projects
from perdure.location.services import LocationHost
from perdure.ports import Clock, Database, IdSource, Neighbours
from perdure.runtime import local_providers
from perdure.runtime.concurrency import Background
from perdure.runtime.known_sessions import KnownSessions
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.locations import Locations
from perdure.runtime.neighbour_watch import NeighbourWatch
from perdure.runtime.permissions import Permissions
from perdure.runtime.run_coordinator import RunCoordinator
from perdure.runtime.runner import RunnerServices, SessionRunner
from perdure.runtime.sessions import Sessions, SessionServices
from perdure.schema.ids import SessionID
from perdure.schema.live_event import InstanceDisposed, StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.store import inbox_table, migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.event_store import EventStore
from perdure.store.permission_table import SavedPermissions
from perdure.store.tail import EventTails
from perdure.tools.file_mutation import FileMutations
from perdure.tools.output_store import ToolOutputStore
from perdure.tools.registry import ToolRegistry


class RuntimeSettings(Value, kw_only=True):
    environment: Environment
    data_dir: str
    default_directory: str
    headless: Headless = "wait"
    """What happens to a permission that must be asked: wait for a reply, or deny."""
    providers: tuple[CatalogProvider, ...] = ()
    """Models that the embedding program answers for."""
    local_models: bool = False
    """Whether to look for model servers running on this machine."""


class Foundations(Value, kw_only=True):
    """What differs between a server, a test and a simulation."""

    database: Database
    neighbours: Neighbours
    clock: Clock
    ids: IdSource


class Runtime(Value, kw_only=True):
    """A running instance. Everything is released when its scope ends."""

    sessions: Sessions
    locations: Locations
    permissions: Permissions
    hub: LiveHub
    store: EventStore
    tools: ToolRegistry
    """Tools of the whole application, below those of every Location."""
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
    async with AsyncExitStack() as stack:
        # --data-dir wins over the environment, everywhere.
        environment = replace(settings.environment, data_dir=settings.data_dir)
        variables = environment.variables
        transport = HttptoolsTransport(proxies=http_proxy.from_environment(variables))
        stack.push_async_callback(transport.aclose)
        filesystem, processes = LocalFilesystem(), LocalProcesses()
        output_directory = f"{settings.data_dir}/{OUTPUT_DIRECTORY}"
        outputs = ToolOutputStore(
            output_directory, filesystem=filesystem, ids=on.ids, clock=on.clock
        )
        application = ToolRegistry()
        saved_rules = SavedPermissions(on.database, on.ids)
        location_map = LocationMap(
            LocationHost(
                environment=environment,
                configuration=Configuration(environment),
                projects=Projects(processes, variables),
                clock=on.clock,
                ids=on.ids,
                transport=transport,
                saved_rules=saved_rules,
                publish=lambda ref, event: hub.publish(event, ref),
                open_tools=BuiltinTools(
                    filesystem=filesystem,
                    processes=processes,
                    mutations=FileMutations(filesystem),
                    ripgrep=find_ripgrep(),
                    application=application,
                ),
                headless=settings.headless,
                providers=settings.providers,
            )
        )
        stack.callback(location_map.close)
        runner = SessionRunner(
            RunnerServices(
                store=store,
                locations=location_map,
                hub=hub,
                outputs=outputs,
                clock=on.clock,
                ids=on.ids,
                platform=sys.platform,
            )
        )

        def status(session_id: SessionID, status: str, message: str | None) -> None:
            shown = {"type": status} | ({} if message is None else {"message": message})
            hub.publish(StatusChanged(session_id=session_id, status=shown), None)

        coordinator = RunCoordinator(runner.drain, status=status)
        locations = Locations(location_map)
        sessions = Sessions(
            SessionServices(
                store=store,
                tails=tails,
                locations=locations,
                coordinator=coordinator,
                known=known,
                clock=on.clock,
                ids=on.ids,
                default_location=LocationRef(directory=settings.default_directory),
            )
        )
        background = await stack.enter_async_context(Background())
        watch = NeighbourWatch(
            store,
            tails,
            coordinator,
            runner=runner,
            known=known,
            neighbours=on.neighbours,
            clock=on.clock,
        )
        background.start(watch.run(), name="neighbours")
        background.start(_wake_at_boot(on.database, runner, coordinator), name="boot")
        background.start(_sweep(outputs), name="tool output sweep")
        try:
            yield Runtime(
                sessions=sessions,
                locations=locations,
                permissions=Permissions(sessions, location_map, saved_rules),
                hub=hub,
                store=store,
                tools=application,
                clock=on.clock,
                ids=on.ids,
                database_path=database_path,
            )
        finally:
            await background.stop()
            await coordinator.close()
            hub.publish(InstanceDisposed(), None)
            hub.close()
            await store.release_all()


async def _sweep(outputs: ToolOutputStore) -> None:
    await outputs.sweep()


async def _wake_at_boot(
    database: Database, runner: SessionRunner, coordinator: RunCoordinator
) -> None:
    """Run what was admitted before the last stop, settle what a crash cut off; a few at a time."""
    pending = await database.read(inbox_table.sessions_with_pending)
    waiting = iter(dict.fromkeys((*pending, *await runner.unfinished())))

    async def worker() -> None:
        for session_id in waiting:
            coordinator.wake(session_id)
            await coordinator.idle(session_id)

    async with asyncio.TaskGroup() as group:
        for _ in range(limits.BOOT_WAKES_PARALLEL_MAX):
            group.create_task(worker())
