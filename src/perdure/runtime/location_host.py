"""What every Location of the process shares, put together from the engine's parts."""

from msgspec.structs import replace

from perdure.host import http_proxy
from perdure.host.environment import Environment
from perdure.host.filesystem import LocalFilesystem
from perdure.host.piped_process import LocalPipedProcesses
from perdure.host.process import LocalProcesses, find_ripgrep
from perdure.host.pty import LocalPtys
from perdure.host.web import WebClient
from perdure.llm.transport import HttpTransport
from perdure.location.builtin_tools import BuiltinTools
from perdure.location.config import Configuration
from perdure.location.credentials import Credentials
from perdure.location.model_snapshot import ModelSnapshot, ModelSource
from perdure.location.opening import LocationHost
from perdure.location.project import Projects
from perdure.location.repositories import Repositories
from perdure.location.saved_rules import SavedRules
from perdure.location.skill_downloads import SkillDownloads
from perdure.location.web_access import Web
from perdure.runtime.concurrency import Background
from perdure.runtime.parts import Parts
from perdure.runtime.plugins import Registries
from perdure.schema.live_event import CatalogChanged, IntegrationsChanged, ModelsRefreshed
from perdure.schema.value import Value
from perdure.tools.file_mutation import FileMutations
from perdure.tools.job_desk import JobDesk
from perdure.tools.output_store import ToolOutputStore
from perdure.tools.task import TaskDesk


class Shared(Value, kw_only=True):
    """What Locations share with the rest of the engine."""

    transport: HttpTransport
    saved_rules: SavedRules
    additions: Registries
    background: Background
    outputs: ToolOutputStore
    credentials: Credentials
    tasks: TaskDesk
    jobs: JobDesk


def environment_of(parts: Parts) -> Environment:
    """The environment as given, but --data-dir wins over it, everywhere."""
    return replace(parts.settings.environment, data_dir=parts.settings.data_dir)


def location_host(parts: Parts, shared: Shared) -> LocationHost:
    settings, on, environment = parts.settings, parts.on, environment_of(parts)
    pages = WebClient(proxies=http_proxy.from_environment(environment.variables))
    tools = _tools(shared, pages)
    return LocationHost(
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
        patience_seconds=settings.permission_timeout,
        book=parts.pending.at,
        providers=settings.providers,
        credentials=shared.credentials,
        models=_models(parts, shared),
    )


def _models(parts: Parts, shared: Shared) -> ModelSnapshot:
    settings, clock = parts.settings, parts.on.clock
    path = f"{settings.data_dir}/cache/models.json.gz"
    url = settings.models_url

    def refreshed() -> None:
        for event in (ModelsRefreshed(), IntegrationsChanged(), CatalogChanged()):
            parts.hub.publish(event, None)

    return ModelSnapshot(
        path,
        variables=settings.environment.variables,
        clock=clock,
        source=ModelSource(url, path, transport=shared.transport, clock=clock) if url else None,
        start=lambda work: shared.background.start(work, name="models"),
        refreshed=refreshed,
    )


def _tools(shared: Shared, pages: WebClient) -> BuiltinTools:
    filesystem = LocalFilesystem()
    return BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(),
        mutations=FileMutations(filesystem),
        outputs=shared.outputs,
        ripgrep=find_ripgrep(),
        application=shared.additions.tools,
        web=Web(pages=pages, transport=shared.transport),
        jobs=shared.jobs,
    )
