"""What every Location of the process shares, put together from the engine's parts."""

from msgspec.structs import replace

from perdure.host import http_proxy
from perdure.host.environment import Environment
from perdure.host.filesystem import LocalFilesystem
from perdure.host.process import LocalProcesses, find_ripgrep
from perdure.host.web import WebClient
from perdure.llm.transport import HttpTransport
from perdure.location.builtin_tools import BuiltinTools
from perdure.location.config import Configuration
from perdure.location.context_registry import ContextRegistry
from perdure.location.project import Projects
from perdure.location.repositories import Repositories
from perdure.location.saved_rules import SavedRules
from perdure.location.services import LocationHost
from perdure.location.skill_downloads import SkillDownloads
from perdure.location.web_access import Web
from perdure.runtime.concurrency import Background
from perdure.runtime.parts import Parts
from perdure.schema.value import Value
from perdure.tools.file_mutation import FileMutations
from perdure.tools.registry import ToolRegistry


class Shared(Value, kw_only=True):
    """What Locations share with the rest of the engine."""

    transport: HttpTransport
    saved_rules: SavedRules
    tools: ToolRegistry
    """Tools of the whole application, below those of every Location."""
    context: ContextRegistry
    background: Background


def environment_of(parts: Parts) -> Environment:
    """The environment as given, but --data-dir wins over it, everywhere."""
    return replace(parts.settings.environment, data_dir=parts.settings.data_dir)


def location_host(parts: Parts, shared: Shared) -> LocationHost:
    settings, on, environment = parts.settings, parts.on, environment_of(parts)
    pages = WebClient(proxies=http_proxy.from_environment(environment.variables))
    return LocationHost(
        environment=environment,
        configuration=Configuration(environment),
        projects=Projects(LocalProcesses(), environment.variables),
        clock=on.clock,
        ids=on.ids,
        transport=shared.transport,
        saved_rules=shared.saved_rules,
        publish=lambda ref, event: parts.hub.publish(event, ref),
        open_tools=_tools(shared, pages),
        skill_downloads=SkillDownloads(
            f"{settings.data_dir}/cache/skills",
            transport=shared.transport,
            clock=on.clock,
            ids=on.ids,
            start=lambda work: shared.background.start(work, name="skills"),
        ),
        repositories=Repositories(
            f"{settings.data_dir}/repos",
            processes=LocalProcesses(),
            variables=environment.variables,
            clock=on.clock,
            ids=on.ids,
            start=lambda work: shared.background.start(work, name="repositories"),
        ),
        pages=pages,
        context=shared.context,
        headless=settings.headless,
        providers=settings.providers,
    )


def _tools(shared: Shared, pages: WebClient) -> BuiltinTools:
    filesystem = LocalFilesystem()
    return BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(),
        mutations=FileMutations(filesystem),
        ripgrep=find_ripgrep(),
        application=shared.tools,
        web=Web(pages=pages, transport=shared.transport),
    )
