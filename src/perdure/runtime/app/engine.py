"""The engine: every service that only a running Session needs, built in dependency order.

LazyEngine loads this module on first use. Services that only read or admit are built in
runtime.app.runtime, and those that Locations share in runtime.app.locations.
"""

import secrets
from collections.abc import Mapping
from functools import partial

from perdure.core import limits
from perdure.host.credentials import keyring
from perdure.host.credentials.session_servers import FileSessionServers
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.http import proxy
from perdure.host.http.client import HttptoolsTransport
from perdure.host.process.child_records import ChildRecords
from perdure.host.process.detached import LocalDetached
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import Launches
from perdure.location.models.credentials import Credentials
from perdure.location.project.git_changes import GitChanges
from perdure.location.project.work_tree import WorkTrees
from perdure.location.registry import LocationRegistry
from perdure.location.tools.built_in import OUTPUT_DIRECTORY
from perdure.net.transport import HttpTransport
from perdure.runtime.app.engine_deps import EngineDeps
from perdure.runtime.app.locations import LocationDeps, build_shared_services
from perdure.runtime.background.job_monitor import JobMonitorDeps
from perdure.runtime.background.jobs import Jobs
from perdure.runtime.background.notices import Notices
from perdure.runtime.background.subagents import Subagents, SubagentServices
from perdure.runtime.compaction.compactor import Compactor
from perdure.runtime.compaction.context_window import ContextWindow, LearnedLimits
from perdure.runtime.drain.crash_recovery import CrashRecovery
from perdure.runtime.drain.drain import SessionDrain
from perdure.runtime.drain.request_preview import RequestPreviews
from perdure.runtime.drain.shell_command import ShellCommands
from perdure.runtime.drain.titles import Titles
from perdure.runtime.drain.turn import TurnServices
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.session_diff import SessionDiffs
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.runtime.human import pending
from perdure.runtime.human.permissions import Permissions
from perdure.runtime.human.questions import Questions
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.locations.api import Files, Locations
from perdure.runtime.locations.integrations import Integrations, LoginServices
from perdure.runtime.locations.mcp import McpServersOfLocations
from perdure.runtime.locations.projects import ProjectList
from perdure.runtime.locations.session_servers import SessionServers
from perdure.runtime.locations.template_commands import TemplateCommands
from perdure.runtime.locations.terminals import Terminals
from perdure.runtime.locations.vcs import VersionControl
from perdure.runtime.ops.provider_slots import ProviderSlots
from perdure.runtime.plugins.plugins import Plugins
from perdure.runtime.session.move import SessionMoves
from perdure.runtime.tasks import Background
from perdure.runtime.turn.media import RequestMedia
from perdure.runtime.turn.model_chain import ModelChains
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import Retries
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import SessionID
from perdure.schema.live_event import CatalogChanged, ConnectionChanged, IntegrationsChanged
from perdure.store.tables.approval_table import SavedApprovals
from perdure.tools.api.output_store import ToolOutputStore


class Engine:
    """The services of a process that runs Sessions. Runtime offers those that clients use."""

    def __init__(self, deps: EngineDeps) -> None:
        platform, store, sessions = deps.platform, deps.store, deps.sessions
        variables = deps.settings.environment.variables
        self._pending = deps.pending
        self._background = Background()
        self.children = ChildRecords(platform.children_directory, platform.processes.me)
        self._launches = Launches()
        self._transport = _build_transport(variables)
        self.plugins = _build_plugins(deps)
        self.tools = self.plugins.registries.tools
        self.outputs = _build_outputs(deps)
        self.snapshots = FileSnapshots(
            deps.settings.data_dir, platform.database, platform.processes
        )
        self.session_diffs = SessionDiffs(self.snapshots)
        self.file_reverts = FileReverts(self.snapshots, platform.processes)

        # Background jobs and subagents report to their Sessions by notices.
        self.notices = Notices(store, wake=partial(_wake_if_allowed, deps))
        self.jobs = _build_jobs(deps, self.notices, self.outputs, self._background)
        self.subagents = _build_subagents(deps, self.notices)

        # Locations, and what clients do with them.
        credentials = self._build_credentials(deps)
        saved_rules = SavedApprovals(platform.database, platform.ids)
        given = FileSessionServers(deps.settings.data_dir, variables)
        self.location_registry = self._build_locations(deps, saved_rules, credentials, given)
        self.locations = _watch_trust(deps, self.location_registry, self._background)
        self.files = Files(self.location_registry)
        processes = LocalProcesses(self.children)
        self.vcs = VersionControl(self.location_registry, WorkTrees(processes, variables))
        self.template_commands = TemplateCommands(self.location_registry)
        self.projects = _build_projects(deps, self.locations)
        self.terminals = Terminals(self.location_registry, secrets.token_bytes)
        self.permissions = Permissions(
            sessions, self.location_registry, saved_rules, deps.pending, database=platform.database
        )
        self.questions = Questions(
            sessions, self.location_registry, deps.pending, database=platform.database
        )
        logins = _build_login_services(deps, self._transport, self._background)
        self.integrations = Integrations(self.location_registry, credentials, logins)
        self.mcp = McpServersOfLocations(
            self.location_registry, self.integrations, credentials, self._transport
        )
        self.session_servers = SessionServers(given, self.location_registry)
        changes = GitChanges(processes, variables)
        self.moves = SessionMoves(store, self.location_registry, changes, platform.clock)

        # Runs. When a Session runs is decided by the coordinator.
        services = self._build_run_services(deps)
        marks = RequestMarks(store)
        self.ownership = SessionOwnership(services)
        self.compactor = Compactor(services, self.ownership)
        self.shell_commands = ShellCommands(services, self.ownership)
        self.crash_recovery = CrashRecovery(services, marks)
        learned = LearnedLimits()
        self.request_previews = RequestPreviews(services, learned)
        self.drain = self._build_drain(services, marks, learned)

    def _build_credentials(self, deps: EngineDeps) -> Credentials:
        settings = deps.settings
        return Credentials(
            keyring.open_store(settings.data_dir, settings.environment.variables),
            transport=self._transport,
            clock=deps.platform.clock,
            start=lambda work: self._background.start(work, name="logins"),
            changed=partial(self._on_credential_changed, deps.hub),
        )

    def _on_credential_changed(self, hub: LiveHub, integration_id: str) -> None:
        _publish_connection(hub, integration_id)
        for location in self.location_registry.list_open():
            location.mcp_servers.reconnect(integration_id)
        self.location_registry.sessions.reconnect(integration_id)

    async def deliver_replies(self) -> None:
        """Deliver replies that the user gave through another process to the runs of this one."""
        await pending.deliver(self._pending, self.location_registry)

    def suspend_requests(self) -> frozenset[SessionID]:
        """Leave what waits for a person to the next process; return the Sessions that wait."""
        found: list[SessionID] = []
        for location in self.location_registry.list_open():
            requests = (*location.permissions.list(), *location.questions.list())
            found += [request.session_id for request in requests]
            location.permissions.suspend()
            location.questions.suspend()
        return frozenset(found)

    async def aclose(self) -> None:
        self.integrations.close()
        self.location_registry.close()
        await self._background.stop()
        await self._transport.aclose()
        await self._launches.aclose()
        await self.children.aclose()
        self.plugins.close()

    def _build_locations(
        self,
        deps: EngineDeps,
        saved_rules: SavedApprovals,
        credentials: Credentials,
        session_servers: FileSessionServers,
    ) -> LocationRegistry:
        location_deps = LocationDeps(
            transport=self._transport,
            saved_rules=saved_rules,
            registries=self.plugins.registries,
            background=self._background,
            outputs=self.outputs,
            credentials=credentials,
            subagents=self.subagents,
            jobs=self.jobs,
            children=self.children,
            launches=self._launches,
            session_servers=session_servers,
        )
        return LocationRegistry(build_shared_services(deps, location_deps))

    def _build_run_services(self, deps: EngineDeps) -> RunServices:
        platform, coordinator = deps.platform, deps.coordinator
        return RunServices(
            store=deps.store,
            locations=self.location_registry,
            hub=deps.hub,
            outputs=self.outputs,
            snapshots=self.snapshots,
            clock=platform.clock,
            ids=platform.ids,
            chance=platform.chance,
            measures=platform.metrics,
            slots=ProviderSlots(platform.database, platform.processes, platform.clock, deps.hub),
            end_orphans=self.children.end_orphans,
            wake=coordinator.wake,
            closing=lambda: coordinator.closing,
        )

    def _build_drain(
        self, services: RunServices, marks: RequestMarks, learned: LearnedLimits
    ) -> SessionDrain:
        turns = TurnServices(
            run=services,
            context_window=ContextWindow(self.compactor, learned),
            marks=marks,
            retries=Retries(services),
            chains=ModelChains(services),
            histories=self.ownership.histories,
            titles=Titles(services, lambda work: self._background.start(work, name="title")),
            media=RequestMedia(),
        )
        return SessionDrain(
            turns, self.ownership, self.crash_recovery, finished=self.subagents.notify_finished
        )


def _build_transport(variables: Mapping[str, str]) -> HttptoolsTransport:
    return HttptoolsTransport(
        proxies=proxy.from_environment(variables), gather_seconds=limits.PROVIDER_GATHER_SECONDS
    )


def _build_projects(deps: EngineDeps, locations: Locations) -> ProjectList:
    platform = deps.platform
    return ProjectList(platform.database, locations, started=platform.clock.now_millis())


def _build_plugins(deps: EngineDeps) -> Plugins:
    plugins = Plugins(partial(_publish_catalog, deps.hub))
    if deps.settings.installed_plugins:
        # Reading the metadata of every installed package takes a while: only on request.
        from perdure.runtime.plugins import installed

        installed.add_installed(plugins, installed.find_installed())
    return plugins


def _build_outputs(deps: EngineDeps) -> ToolOutputStore:
    return ToolOutputStore(
        f"{deps.settings.data_dir}/{OUTPUT_DIRECTORY}",
        filesystem=LocalFilesystem(),
        ids=deps.platform.ids,
        clock=deps.platform.clock,
    )


def _watch_trust(deps: EngineDeps, registry: LocationRegistry, background: Background) -> Locations:
    """The Locations for clients, which are told of changes of trust."""
    hub = deps.hub

    def start() -> None:
        watching = locations.watch_trust(lambda: hub.has_readers, deps.platform.clock)
        background.start(watching, name="trust")

    locations = Locations(
        registry, publish=lambda ref, event: hub.publish(event, ref), start_watching=start
    )
    return locations


def _build_jobs(
    deps: EngineDeps, notices: Notices, outputs: ToolOutputStore, background: Background
) -> Jobs:
    platform = deps.platform
    monitor = JobMonitorDeps(
        database=platform.database,
        notices=notices,
        detached=platform.detached or LocalDetached(),
        filesystem=LocalFilesystem(),
        clock=platform.clock,
    )
    return Jobs(
        monitor,
        outputs=outputs,
        ids=platform.ids,
        processes=platform.processes,
        background=lambda work: background.start(work, name="job"),
    )


def _build_subagents(deps: EngineDeps, notices: Notices) -> Subagents:
    services = SubagentServices(
        store=deps.store,
        coordinator=deps.coordinator,
        activity=deps.activity,
        notices=notices,
        processes=deps.platform.processes,
        clock=deps.platform.clock,
    )
    return Subagents(services)


def _build_login_services(
    deps: EngineDeps, transport: HttpTransport, background: Background
) -> LoginServices:
    return LoginServices(
        transport=transport,
        clock=deps.platform.clock,
        ids=deps.platform.ids,
        entropy=secrets.token_bytes,
        start=lambda work: background.start(work, name="logins"),
    )


def _wake_if_allowed(deps: EngineDeps, session_id: SessionID) -> None:
    """Wake a Session; a process that resumes none, only one that already runs here."""
    if deps.settings.resumes != "none" or session_id in deps.coordinator.active:
        deps.coordinator.wake(session_id)


def _publish_connection(hub: LiveHub, integration_id: str) -> None:
    """A credential applies in every Location, so the events go to the clients of all."""
    hub.publish(ConnectionChanged(integration_id), None)
    _publish_catalog(hub)


def _publish_catalog(hub: LiveHub) -> None:
    for event in (IntegrationsChanged(), CatalogChanged()):
        hub.publish(event, None)
