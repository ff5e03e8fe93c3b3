"""The engine: what it takes to run a Session, from the model's wire to the tools.

The composition root loads this module when it is first needed (runtime.late). Everything a request
needs that only reads or admits stands outside of it.
"""

from perdure.host import http_proxy
from perdure.host.filesystem import LocalFilesystem
from perdure.host.http import HttptoolsTransport
from perdure.host.process import LocalProcesses
from perdure.location.builtin_tools import OUTPUT_DIRECTORY
from perdure.location.context_registry import ContextRegistry
from perdure.location.git_changes import GitChanges
from perdure.location.location_map import LocationMap
from perdure.runtime.compactor import Compactor
from perdure.runtime.concurrency import Background
from perdure.runtime.location_host import Shared, location_host
from perdure.runtime.locations import Locations
from perdure.runtime.moves import Moves
from perdure.runtime.parts import Parts
from perdure.runtime.permissions import Permissions
from perdure.runtime.plugins import Plugins
from perdure.runtime.provider_contexts import ProviderContexts
from perdure.runtime.questions import Questions
from perdure.runtime.run_services import RunServices
from perdure.runtime.runner import SessionRunner
from perdure.runtime.tenure import Tenures
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
        self.plugins = Plugins(everywhere, self.tools)
        self.outputs = ToolOutputStore(
            f"{settings.data_dir}/{OUTPUT_DIRECTORY}",
            filesystem=LocalFilesystem(),
            ids=on.ids,
            clock=on.clock,
        )
        self._transport = HttptoolsTransport(proxies=http_proxy.from_environment(variables))
        self._background = Background()
        saved_rules = SavedPermissions(on.database, on.ids)
        shared = Shared(
            transport=self._transport,
            saved_rules=saved_rules,
            tools=self.tools,
            context=everywhere,
            background=self._background,
        )
        self._location_map = LocationMap(location_host(parts, shared))
        self.locations = Locations(self._location_map)
        self.permissions = Permissions(parts.sessions, self._location_map, saved_rules)
        self.questions = Questions(parts.sessions, self._location_map)
        services = RunServices(
            store=parts.store,
            locations=self._location_map,
            hub=parts.hub,
            outputs=self.outputs,
            clock=on.clock,
            ids=on.ids,
            wake=parts.wake,
        )
        self.tenures = Tenures(services)
        self.runner = SessionRunner(services, self.tenures)
        self.compactor = Compactor(services, self.tenures)
        self.moves = Moves(
            parts.store,
            self._location_map,
            GitChanges(LocalProcesses(), variables),
            on.clock,
        )
        self.provider_contexts = ProviderContexts(services)

    async def aclose(self) -> None:
        self._location_map.close()
        await self._background.stop()
        await self._transport.aclose()
