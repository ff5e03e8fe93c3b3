"""The engine: what it takes to run a Session, from the model's wire to the tools.

The composition root loads this module when it is first needed (runtime.late). Everything a request
needs that only reads or admits stands outside of it.
"""

from msgspec.structs import replace

from perdure.host import http_proxy
from perdure.host.filesystem import LocalFilesystem
from perdure.host.http import HttptoolsTransport
from perdure.host.process import LocalProcesses, find_ripgrep
from perdure.host.web import WebClient
from perdure.location.builtin_tools import OUTPUT_DIRECTORY, BuiltinTools
from perdure.location.config import Configuration
from perdure.location.context_registry import ContextRegistry
from perdure.location.git_changes import GitChanges
from perdure.location.location_map import LocationMap
from perdure.location.project import Projects
from perdure.location.services import LocationHost
from perdure.location.skill_downloads import SkillDownloads
from perdure.location.web_access import Web
from perdure.runtime.compactor import Compactor
from perdure.runtime.concurrency import Background
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
from perdure.tools.file_mutation import FileMutations
from perdure.tools.output_store import ToolOutputStore
from perdure.tools.registry import ToolRegistry


class Engine:
    def __init__(self, parts: Parts) -> None:
        settings, on = parts.settings, parts.on
        # --data-dir wins over the environment, everywhere.
        environment = replace(settings.environment, data_dir=settings.data_dir)
        proxies = http_proxy.from_environment(environment.variables)
        filesystem, processes = LocalFilesystem(), LocalProcesses()
        saved_rules = SavedPermissions(on.database, on.ids)
        self.tools = ToolRegistry()
        """Tools of the whole application, below those of every Location."""
        pages = WebClient(proxies=proxies)
        everywhere = ContextRegistry()
        self.plugins = Plugins(everywhere, self.tools)
        self.outputs = ToolOutputStore(
            f"{settings.data_dir}/{OUTPUT_DIRECTORY}",
            filesystem=filesystem,
            ids=on.ids,
            clock=on.clock,
        )
        self._transport = HttptoolsTransport(proxies=proxies)
        self._background = Background()
        self._location_map = LocationMap(
            LocationHost(
                environment=environment,
                configuration=Configuration(environment),
                projects=Projects(processes, environment.variables),
                clock=on.clock,
                ids=on.ids,
                transport=self._transport,
                saved_rules=saved_rules,
                publish=lambda ref, event: parts.hub.publish(event, ref),
                open_tools=BuiltinTools(
                    filesystem=filesystem,
                    processes=processes,
                    mutations=FileMutations(filesystem),
                    ripgrep=find_ripgrep(),
                    application=self.tools,
                    web=Web(pages=pages, transport=self._transport),
                ),
                skill_downloads=SkillDownloads(
                    f"{settings.data_dir}/cache/skills",
                    transport=self._transport,
                    clock=on.clock,
                    ids=on.ids,
                    start=lambda work: self._background.start(work, name="skills"),
                ),
                pages=pages,
                context=everywhere,
                headless=settings.headless,
                providers=settings.providers,
            )
        )
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
        )
        self.tenures = Tenures(services)
        self.runner = SessionRunner(services, self.tenures)
        self.compactor = Compactor(services, self.tenures)
        self.moves = Moves(
            parts.store,
            self._location_map,
            GitChanges(processes, environment.variables),
            on.clock,
        )
        self.provider_contexts = ProviderContexts(services)

    async def aclose(self) -> None:
        self._location_map.close()
        await self._background.stop()
        await self._transport.aclose()
