"""What every Location of the process shares, put together from the engine's parts."""

from msgspec.structs import replace

from perdure.host.environment import Environment
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.http import proxy
from perdure.host.http.web_pages import WebClient
from perdure.host.process.piped import LocalPipedProcesses
from perdure.host.process.pty import LocalPtys
from perdure.host.process.runner import LocalProcesses, find_ripgrep
from perdure.location.approval.stores import SavedRules
from perdure.location.config.config import Configuration
from perdure.location.factory import SharedServices
from perdure.location.models.credentials import Credentials
from perdure.location.models.facts_cache import ModelFactsCache, ModelFactsSource
from perdure.location.project.project import Projects
from perdure.location.project.repositories import Repositories
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.tools.built_in import BuiltinTools
from perdure.location.tools.web_access import WebServices
from perdure.net.transport import HttpTransport
from perdure.ports.jobs import BackgroundJobs
from perdure.runtime.app.parts import EngineDeps
from perdure.runtime.plugins.plugins import Registries
from perdure.runtime.tasks import Background
from perdure.schema.live_event import CatalogChanged, IntegrationsChanged, ModelsRefreshed
from perdure.schema.value import Value
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.builtin.task import SubagentRunner
from perdure.tools.files.mutation import FileMutations


class LocationDeps(Value, kw_only=True):
    """What Locations share with the rest of the engine."""

    transport: HttpTransport
    saved_rules: SavedRules
    additions: Registries
    background: Background
    outputs: ToolOutputStore
    credentials: Credentials
    tasks: SubagentRunner
    jobs: BackgroundJobs


def environment_of(parts: EngineDeps) -> Environment:
    """The environment as given, but --data-dir wins over it, everywhere."""
    return replace(parts.settings.environment, data_dir=parts.settings.data_dir)


def location_host(parts: EngineDeps, shared: LocationDeps) -> SharedServices:
    settings, on, environment = parts.settings, parts.on, environment_of(parts)
    pages = WebClient(proxies=proxy.from_environment(environment.variables))
    tools = _tools(shared, pages)
    return SharedServices(
        environment=environment,
        configuration=Configuration(environment, shared.additions.documents),
        projects=Projects(LocalProcesses(), environment.variables),
        clock=on.clock,
        ids=on.ids,
        transport=shared.transport,
        saved_rules=shared.saved_rules,
        publish=lambda ref, event: parts.hub.publish(event, ref),
        open_tools=tools,
        open_files=tools.files,
        terminals=LocalPtys(),
        servers=LocalPipedProcesses(),
        start=lambda work: shared.background.start(work, name="program of a Location"),
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
        context=shared.additions.context,
        tasks=shared.tasks,
        headless=settings.headless,
        reply_timeout_seconds=settings.permission_timeout,
        pending_store=parts.pending.for_location,
        providers=settings.providers,
        credentials=shared.credentials,
        models=_models(parts, shared),
    )


def _models(parts: EngineDeps, shared: LocationDeps) -> ModelFactsCache:
    settings, clock = parts.settings, parts.on.clock
    path = f"{settings.data_dir}/cache/models.json.gz"
    url = settings.models_url

    def refreshed() -> None:
        for event in (ModelsRefreshed(), IntegrationsChanged(), CatalogChanged()):
            parts.hub.publish(event, None)

    return ModelFactsCache(
        path,
        variables=settings.environment.variables,
        clock=clock,
        source=ModelFactsSource(url, path, transport=shared.transport, clock=clock)
        if url
        else None,
        start=lambda work: shared.background.start(work, name="models"),
        refreshed=refreshed,
    )


def _tools(shared: LocationDeps, pages: WebClient) -> BuiltinTools:
    filesystem = LocalFilesystem()
    return BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(),
        mutations=FileMutations(filesystem),
        outputs=shared.outputs,
        ripgrep=find_ripgrep(),
        application=shared.additions.tools,
        web=WebServices(pages=pages, transport=shared.transport),
        jobs=shared.jobs,
    )
