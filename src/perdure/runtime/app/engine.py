"""The engine: what it takes to run a Session, from the model's wire to the tools.

The composition root loads this module when it is first needed (runtime.app.late). Everything a
request needs that only reads or admits stands outside of it. Its parts are joined in dependency
order: what a plugin adds, what tools leave on disk, work beside the runs, Locations, and the runs
themselves.
"""

from functools import partial
from importlib import import_module

from perdure.host.credentials import keyring
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.http import proxy
from perdure.host.http.client import HttptoolsTransport
from perdure.location.models.credentials import Credentials
from perdure.location.tools.built_in import OUTPUT_DIRECTORY
from perdure.runtime.app import open_locations, session_runs, side_work
from perdure.runtime.app.location_host import LocationDeps
from perdure.runtime.app.parts import EngineDeps
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.runtime.human import pending
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.plugins.plugins import Plugins
from perdure.runtime.tasks import Background, shielded
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import SessionID
from perdure.schema.live_event import CatalogChanged, ConnectionChanged, IntegrationsChanged
from perdure.store.tables.permission_table import SavedPermissions
from perdure.tools.api.output_store import ToolOutputStore


class Engine:
    def __init__(self, parts: EngineDeps) -> None:
        self._parts = parts
        self._background = Background()
        variables = parts.settings.environment.variables
        self._transport = HttptoolsTransport(proxies=proxy.from_environment(variables))
        self.plugins = _plugins(parts)
        self.outputs = _outputs(parts)
        self.snapshots = FileSnapshots(parts.settings.data_dir, parts.on.database)
        self.reverted_files = FileReverts(self.snapshots, parts.on.processes)
        self.side_work = side_work.join(parts, self.outputs, self._background)
        self.open_locations = open_locations.join(parts, self._shared())
        self.runs = session_runs.join(self._run_services(), self._background)

    async def drain(self, session_id: SessionID) -> None:
        """Run a Session; however that ends, whoever asked it for something hears of it."""
        try:
            await self.runs.runner.drain(session_id)
        finally:
            await shielded(self.side_work.subagents.notify_finished(session_id))

    async def deliver(self) -> None:
        """What people told other processes, to those who wait for it here."""
        await pending.deliver(self._parts.pending, self.open_locations.map)

    async def aclose(self) -> None:
        self.open_locations.close()
        await self._background.stop()
        await self._transport.aclose()
        self.plugins.close()

    def _shared(self) -> LocationDeps:
        on = self._parts.on
        return LocationDeps(
            transport=self._transport,
            saved_rules=SavedPermissions(on.database, on.ids),
            additions=self.plugins.registries,
            background=self._background,
            outputs=self.outputs,
            credentials=self._credentials(),
            tasks=self.side_work.subagents,
            jobs=self.side_work.jobs,
        )

    def _credentials(self) -> Credentials:
        settings = self._parts.settings
        return Credentials(
            keyring.open_store(settings.data_dir, settings.environment.variables),
            transport=self._transport,
            clock=self._parts.on.clock,
            start=lambda work: self._background.start(work, name="logins"),
            changed=partial(_tell_connection, self._parts.hub),
        )

    def _run_services(self) -> RunServices:
        parts, on = self._parts, self._parts.on
        return RunServices(
            store=parts.store,
            locations=self.open_locations.map,
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


def _plugins(parts: EngineDeps) -> Plugins:
    plugins = Plugins(partial(_tell_catalog, parts.hub))
    if parts.settings.installed_plugins:
        # Loaded only here: to look through the installed packages takes a while.
        installed = import_module("perdure.runtime.plugins.installed")
        installed.add_all(plugins, installed.found())
    return plugins


def _outputs(parts: EngineDeps) -> ToolOutputStore:
    return ToolOutputStore(
        f"{parts.settings.data_dir}/{OUTPUT_DIRECTORY}",
        filesystem=LocalFilesystem(),
        ids=parts.on.ids,
        clock=parts.on.clock,
    )


def _tell_connection(hub: LiveHub, integration_id: str) -> None:
    """A credential counts everywhere, so everybody hears of it."""
    hub.publish(ConnectionChanged(integration_id), None)
    _tell_catalog(hub)


def _tell_catalog(hub: LiveHub) -> None:
    for event in (IntegrationsChanged(), CatalogChanged()):
        hub.publish(event, None)
