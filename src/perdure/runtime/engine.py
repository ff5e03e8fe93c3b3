"""The engine: what it takes to run a Session, from the model's wire to the tools.

The composition root loads this module when it is first needed (runtime.late). Everything a request
needs that only reads or admits stands outside of it.
"""

import secrets
from functools import partial
from importlib import import_module

from perdure.host import http_proxy, keyring_credentials
from perdure.host.detached import LocalDetached
from perdure.host.filesystem import LocalFilesystem
from perdure.host.http import HttptoolsTransport
from perdure.host.process import LocalProcesses
from perdure.location.builtin_tools import OUTPUT_DIRECTORY
from perdure.location.context_registry import ContextRegistry
from perdure.location.credentials import Credentials
from perdure.location.git_changes import GitChanges
from perdure.location.location_map import LocationMap
from perdure.location.plugin_documents import PluginDocuments
from perdure.runtime import pending_requests
from perdure.runtime.attempts import Attempts
from perdure.runtime.compactor import Compactor
from perdure.runtime.concurrency import Background, shielded
from perdure.runtime.files import Files
from perdure.runtime.integrations import Integrations, LoginServices
from perdure.runtime.job_watch import Watching
from perdure.runtime.jobs import Jobs
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.location_host import Shared, location_host
from perdure.runtime.locations import Locations
from perdure.runtime.moves import Moves
from perdure.runtime.notices import Notices
from perdure.runtime.parts import Foundations, Parts
from perdure.runtime.permissions import Permissions
from perdure.runtime.plugins import Plugins
from perdure.runtime.provider_contexts import ProviderContexts
from perdure.runtime.questions import Questions
from perdure.runtime.recoveries import Recoveries
from perdure.runtime.reverted_files import RevertedFiles
from perdure.runtime.run_services import RunServices
from perdure.runtime.runner import SessionRunner
from perdure.runtime.snapshots import Snapshots
from perdure.runtime.subagents import Subagents, SubagentServices
from perdure.runtime.tenure import Tenures
from perdure.runtime.terminals import Terminals
from perdure.runtime.titles import Titles
from perdure.schema.ids import SessionID
from perdure.schema.live_event import CatalogChanged, ConnectionChanged, IntegrationsChanged
from perdure.store.permission_table import SavedPermissions
from perdure.tools.output_store import ToolOutputStore
from perdure.tools.registry import ToolRegistry


class Engine:
    def __init__(self, parts: Parts) -> None:
        settings, on = parts.settings, parts.on
        variables = settings.environment.variables
        self.tools = ToolRegistry()
        """Tools of the whole application, below those of every Location."""
        everywhere = ContextRegistry()
        said = PluginDocuments(partial(_tell_catalog, parts.hub))
        self.plugins = Plugins(everywhere, self.tools, said)
        if settings.installed_plugins:
            # Loaded only here: to look through the installed packages takes a while.
            installed = import_module("perdure.runtime.installed_plugins")
            installed.add_all(self.plugins, installed.found())
        self.outputs = ToolOutputStore(
            f"{settings.data_dir}/{OUTPUT_DIRECTORY}",
            filesystem=LocalFilesystem(),
            ids=on.ids,
            clock=on.clock,
        )
        self.notices = Notices(parts.store, on.clock, wake=partial(_wake, parts))
        self.snapshots = Snapshots(settings.data_dir, on.database)
        self.reverted_files = RevertedFiles(self.snapshots, on.neighbours)
        self._transport = HttptoolsTransport(proxies=http_proxy.from_environment(variables))
        self._background = Background()
        self.jobs = self._jobs(on)
        saved_rules = SavedPermissions(on.database, on.ids)
        logins = self._logins(on)
        credentials = self._credentials(parts, logins)
        self.subagents = Subagents(
            SubagentServices(
                store=parts.store,
                coordinator=parts.coordinator,
                notices=self.notices,
                neighbours=on.neighbours,
                clock=on.clock,
            )
        )
        shared = Shared(
            transport=self._transport,
            saved_rules=saved_rules,
            tools=self.tools,
            context=everywhere,
            plugins=said,
            background=self._background,
            outputs=self.outputs,
            credentials=credentials,
            tasks=self.subagents,
            jobs=self.jobs,
        )
        self._location_map = LocationMap(location_host(parts, shared))
        self.locations = Locations(self._location_map)
        self.files = Files(self._location_map)
        self.terminals = Terminals(self._location_map, secrets.token_bytes)
        self._pending = parts.pending
        self.permissions = Permissions(
            parts.sessions, self._location_map, saved_rules, parts.pending, database=on.database
        )
        self.questions = Questions(
            parts.sessions, self._location_map, parts.pending, database=on.database
        )
        self.integrations = Integrations(self._location_map, credentials, logins)
        services = RunServices(
            store=parts.store,
            locations=self._location_map,
            hub=parts.hub,
            outputs=self.outputs,
            snapshots=self.snapshots,
            clock=on.clock,
            ids=on.ids,
            chance=on.chance,
            measures=on.measures,
            wake=parts.wake,
            closing=parts.closing,
        )
        self.tenures = Tenures(services)
        self.compactor = Compactor(services, self.tenures)
        titles = Titles(services, lambda work: self._background.start(work, name="title"))
        attempts = Attempts(parts.store)
        self.recoveries = Recoveries(services, attempts)
        self.runner = SessionRunner(
            services,
            self.tenures,
            self.compactor,
            titles,
            attempts=attempts,
            recoveries=self.recoveries,
        )
        self.moves = Moves(
            parts.store,
            self._location_map,
            GitChanges(LocalProcesses(), variables),
            on.clock,
        )
        self.provider_contexts = ProviderContexts(services)

    async def drain(self, session_id: SessionID, force: bool) -> None:
        """Run a Session; however that ends, whoever asked it for something hears of it."""
        try:
            await self.runner.drain(session_id, force)
        finally:
            await shielded(self.subagents.rested(session_id))

    def _jobs(self, on: Foundations) -> Jobs:
        return Jobs(
            Watching(
                database=on.database,
                notices=self.notices,
                processes=on.detached or LocalDetached(),
                filesystem=LocalFilesystem(),
                clock=on.clock,
            ),
            outputs=self.outputs,
            ids=on.ids,
            neighbours=on.neighbours,
            background=lambda work: self._background.start(work, name="job"),
        )

    def _logins(self, on: Foundations) -> LoginServices:
        return LoginServices(
            transport=self._transport,
            clock=on.clock,
            ids=on.ids,
            entropy=secrets.token_bytes,
            start=lambda work: self._background.start(work, name="logins"),
        )

    def _credentials(self, parts: Parts, logins: LoginServices) -> Credentials:
        settings = parts.settings
        return Credentials(
            keyring_credentials.open_store(settings.data_dir, settings.environment.variables),
            transport=self._transport,
            clock=parts.on.clock,
            start=logins.start,
            changed=partial(_tell_connection, parts.hub),
        )

    async def deliver(self) -> None:
        """What people told other processes, to those who wait for it here."""
        await pending_requests.deliver(self._pending, self._location_map)

    async def aclose(self) -> None:
        self.integrations.close()
        self._location_map.close()
        await self._background.stop()
        await self._transport.aclose()
        self.plugins.close()


def _wake(parts: Parts, session_id: SessionID) -> None:
    """Run a Session that has something to hear. A mere visitor leaves that to who comes next."""
    if parts.settings.resumes or session_id in parts.coordinator.active:
        parts.wake(session_id)


def _tell_connection(hub: LiveHub, integration_id: str) -> None:
    """A credential counts everywhere, so everybody hears of it."""
    hub.publish(ConnectionChanged(integration_id), None)
    _tell_catalog(hub)


def _tell_catalog(hub: LiveHub) -> None:
    for event in (IntegrationsChanged(), CatalogChanged()):
        hub.publish(event, None)
