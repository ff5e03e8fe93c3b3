"""The services that every Location of a process shares, built from those of the engine."""

from functools import partial

from msgspec.structs import replace

from perdure.core.credentials import mcp_authorization as authorization
from perdure.core.credentials.keys import StoreUnreadable
from perdure.host.environment import Environment
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.http import proxy
from perdure.host.http.web_pages import WebClient
from perdure.host.mcp.connector import LocalMcpConnector
from perdure.host.process.child_records import ChildRecords
from perdure.host.process.piped import LocalPipedProcesses
from perdure.host.process.pty import LocalPtys
from perdure.host.process.runner import LocalProcesses, find_ripgrep
from perdure.host.sandbox.launches import Launches
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.host.sandbox.network_proxy import NetworkProxy
from perdure.llm.error import LLMError
from perdure.location.approval.stores import SavedRules
from perdure.location.config.config import Configuration
from perdure.location.factory import SharedServices
from perdure.location.mcp.servers import McpServices
from perdure.location.models.credentials import Credentials
from perdure.location.models.facts_cache import ModelFactsCache, ModelFactsSource
from perdure.location.project.project import Projects
from perdure.location.project.repositories import Repositories
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.tools.built_in import BuiltinTools
from perdure.location.tools.web_access import WebServices
from perdure.net.transport import HttpTransport
from perdure.ports import Database
from perdure.ports.jobs import BackgroundJobs
from perdure.ports.mcp import McpError, McpLoginRequiredError
from perdure.ports.session_mcp import SessionServerStore
from perdure.ports.subagents import SubagentRunner
from perdure.runtime.app.engine_deps import EngineDeps
from perdure.runtime.plugins.plugins import Registries
from perdure.runtime.tasks import Background
from perdure.schema.approval.permission import SessionRules
from perdure.schema.ids import SessionID
from perdure.schema.live_event import CatalogChanged, IntegrationsChanged, ModelsRefreshed
from perdure.schema.value import Value
from perdure.store.mcp.tool_lists import StoredToolLists
from perdure.store.tables import session_table
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.files.mutation import FileMutations


class LocationDeps(Value, kw_only=True):
    """The engine's services that Locations are built from."""

    transport: HttpTransport
    saved_rules: SavedRules
    registries: Registries
    background: Background
    outputs: ToolOutputStore
    credentials: Credentials
    subagents: SubagentRunner
    jobs: BackgroundJobs
    children: ChildRecords
    launches: Launches
    session_servers: SessionServerStore


def build_shared_services(deps: EngineDeps, shared: LocationDeps) -> SharedServices:
    settings, platform = deps.settings, deps.platform
    # --data-dir takes precedence over the environment.
    environment = replace(settings.environment, data_dir=settings.data_dir)
    pages = WebClient(proxies=proxy.from_environment(environment.variables))
    tools = _build_tools(shared, pages, _build_network_proxy(environment, shared))
    return SharedServices(
        environment=environment,
        configuration=Configuration(environment, shared.registries.documents),
        projects=Projects(LocalProcesses(shared.children), environment.variables),
        clock=platform.clock,
        ids=platform.ids,
        transport=shared.transport,
        saved_rules=shared.saved_rules,
        publish=lambda ref, event: deps.hub.publish(event, ref),
        open_tools=tools,
        open_files=tools.files,
        terminals=LocalPtys(shared.children),
        servers=LocalPipedProcesses(shared.children),
        mcp=_build_mcp(deps, shared),
        session_servers=shared.session_servers,
        start=lambda work: shared.background.start(work, name="program of a Location"),
        skill_downloads=SkillDownloads(
            f"{settings.data_dir}/cache/skills",
            transport=shared.transport,
            clock=platform.clock,
            ids=platform.ids,
            start=lambda work: shared.background.start(work, name="skills"),
        ),
        repositories=Repositories(
            f"{settings.data_dir}/repos",
            processes=LocalProcesses(shared.children),
            variables=environment.variables,
            clock=platform.clock,
            ids=platform.ids,
            start=lambda work: shared.background.start(work, name="repositories"),
        ),
        pages=pages,
        context=shared.registries.context,
        tasks=shared.subagents,
        headless=settings.headless,
        unattended=lambda: "wait" if deps.hub.has_readers else settings.unattended,
        reply_timeout_seconds=settings.permission_timeout,
        load_session_rules=partial(_load_session_rules, platform.database),
        pending_store=deps.pending.for_location,
        providers=settings.providers,
        credentials=shared.credentials,
        models=_build_model_facts(deps, shared),
    )


def _build_mcp(deps: EngineDeps, shared: LocationDeps) -> McpServices:
    platform = deps.platform
    return McpServices(
        connector=LocalMcpConnector(LocalPipedProcesses(shared.children)),
        lists=StoredToolLists(platform.database, platform.clock),
        start=lambda work: shared.background.start(work, name="MCP server"),
        authorization=partial(_authorization, shared.credentials),
    )


async def _authorization(credentials: Credentials, url: str) -> str | None:
    """The header for a server with a stored login. Raises McpError if it was lost."""
    name, stored = authorization.integration_id(url), credentials.stored()
    if isinstance(stored, StoreUnreadable) or name not in stored:
        return None
    if authorization.origin(url) not in stored[name].origins:
        return None
    try:
        return f"Bearer {await credentials.get_access_token(name)}"
    except LLMError as error:
        if error.reason == "authentication":
            raise McpLoginRequiredError(str(error)) from error
        raise McpError(str(error)) from error


async def _load_session_rules(database: Database, session_id: SessionID) -> SessionRules:
    found = await database.read(lambda tx: session_table.load(tx, session_id))
    return () if found is None else found.permissions or ()


def _build_model_facts(deps: EngineDeps, shared: LocationDeps) -> ModelFactsCache:
    settings, clock = deps.settings, deps.platform.clock
    path = f"{settings.data_dir}/cache/models.json.gz"
    url = settings.models_url

    def publish_refreshed() -> None:
        for event in (ModelsRefreshed(), IntegrationsChanged(), CatalogChanged()):
            deps.hub.publish(event, None)

    return ModelFactsCache(
        path,
        variables=settings.environment.variables,
        clock=clock,
        source=ModelFactsSource(url, path, transport=shared.transport, clock=clock)
        if url
        else None,
        start=lambda work: shared.background.start(work, name="models"),
        refreshed=publish_refreshed,
    )


def _build_network_proxy(environment: Environment, shared: LocationDeps) -> NetworkProxy:
    return NetworkProxy(
        environment.temp_dir,
        start=lambda work: shared.background.start(work, name="network of a command"),
        proxies=proxy.from_environment(environment.variables),
    )


def _build_tools(
    shared: LocationDeps, pages: WebClient, network_proxy: NetworkProxy
) -> BuiltinTools:
    filesystem = LocalFilesystem()
    return BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(shared.children, shared.launches),
        mutations=FileMutations(filesystem),
        outputs=shared.outputs,
        ripgrep=find_ripgrep(),
        application=shared.registries.tools,
        web=WebServices(pages=pages, transport=shared.transport),
        jobs=shared.jobs,
        sandbox=LocalSandbox(LocalProcesses(shared.children, shared.launches), proxy=network_proxy),
    )
