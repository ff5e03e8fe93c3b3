"""Builds a Location from its services, and rebuilds it when the configuration changes.

Opening only reads the configuration: no process is started, tools are made when a turn first needs
them, and the project's identity is resolved on demand. When the configuration changes, a new
Location is built; turns that hold the old one keep it, and pending requests stay pending.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from perdure.core.approval import rules
from perdure.core.models.catalog import CatalogProvider
from perdure.core.settings.settings import Settings
from perdure.host.environment import Environment
from perdure.location.agents import agents
from perdure.location.agents.command_files import CommandFiles
from perdure.location.agents.commands import Commands
from perdure.location.agents.context_source import CallableAgents
from perdure.location.approval.approvals import LocationApprovals
from perdure.location.approval.location_rules import LocationRules
from perdure.location.approval.permissions import LocationPermissions, PendingPermissions
from perdure.location.approval.questions import LocationQuestions
from perdure.location.approval.session_rules import LoadRules, SessionRuleSource, load_nothing
from perdure.location.approval.stores import NoPendingStore, PendingStore, SavedRules
from perdure.location.config.config import Configuration
from perdure.location.context import built_in
from perdure.location.context.configured_instructions import ConfiguredInstructions
from perdure.location.context.instructions import Instructions
from perdure.location.context.registry import ContextRegistry
from perdure.location.location import Location
from perdure.location.mcp import resources
from perdure.location.mcp.offered_tools import McpTools
from perdure.location.mcp.servers import McpServers, McpServices, ServerEnvironment
from perdure.location.models import cloud_logins
from perdure.location.models.catalog import Catalog
from perdure.location.models.credentials import Credentials
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.integrations import Integrations
from perdure.location.project import place, project
from perdure.location.project.project import Projects
from perdure.location.project.references import References
from perdure.location.project.repositories import Repositories
from perdure.location.skills import skills
from perdure.location.skills.context_source import AgentSkills
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.skills.skills import SkillDirectories, SkillFolders
from perdure.location.tools.location_tools import LocationTools, OpenTools, ToolServices
from perdure.location.workspace.attachments import AttachmentPermissions, Attachments
from perdure.location.workspace.files import LocationFiles
from perdure.location.workspace.language_servers import LanguageServers
from perdure.location.workspace.terminals import LocationTerminals
from perdure.net.transport import HttpTransport
from perdure.ports import (
    Clock,
    IdSource,
    PipedProcesses,
    TerminalHost,
    WebPages,
)
from perdure.ports.session_mcp import NoSessionServers, SessionServerStore
from perdure.ports.subagents import SubagentRunner
from perdure.ports.tasks import StartTask
from perdure.schema.approval.permission import Headless, SavedPlace
from perdure.schema.live_event import LiveEvent, McpChanged
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.tools.builtin.task import TaskAgents

logger = logging.getLogger(__name__)


class SharedServices(Value, kw_only=True):
    """The services that all Locations of the process share."""

    environment: Environment
    configuration: Configuration
    projects: Projects
    clock: Clock
    ids: IdSource
    transport: HttpTransport
    saved_rules: SavedRules
    publish: Callable[[LocationRef, LiveEvent], None]
    open_tools: OpenTools
    open_files: Callable[[ToolServices], LocationFiles]
    terminals: TerminalHost
    servers: PipedProcesses
    """Starts language servers."""
    mcp: McpServices
    """Connects to MCP servers, and knows their tools."""
    session_servers: SessionServerStore = NoSessionServers()
    """The MCP servers that clients gave to Sessions."""
    start: StartTask
    """Runs a coroutine as a background task until it or the process ends."""
    skill_downloads: SkillDownloads
    repositories: Repositories
    pages: WebPages
    context: ContextRegistry
    """Sources of the System Context of every Location."""
    tasks: SubagentRunner | None = None
    """Runs subagents; without it there are none."""
    headless: Headless = "wait"
    unattended: Callable[[], Headless] = lambda: "wait"
    """What counts at this moment, because a client is attached or not."""
    reply_timeout_seconds: float | None = None
    """How long to wait for a user's reply; None waits for ever."""
    load_session_rules: LoadRules = load_nothing
    """Reads the permission rules of a Session."""
    pending_store: Callable[[LocationRef], PendingStore] = lambda ref: NoPendingStore()
    """Makes the store of a Location's pending requests."""
    platform: str = sys.platform
    providers: tuple[CatalogProvider, ...] = ()
    """Providers of the host program, in addition to the configured ones."""
    models: ModelFactsCache | None = None
    """The Facts about models; None for no facts."""
    credentials: Credentials | None = None
    """The user's stored credentials; None for no store."""


def open_location(ref: LocationRef, shared: SharedServices) -> Location:
    """Build the Location of an existing directory. Raises OSError."""
    root = project.find_root(ref.directory)
    settings = shared.configuration.load(ref.directory, root=root)
    pending_store = shared.pending_store(ref)
    permissions = LocationPermissions(
        rules=LocationRules(lambda agent: rules.DENY_ALL),
        approvals=LocationApprovals(
            shared.saved_rules,
            place=partial(_find_place, shared.projects, ref.directory),
            clock=shared.clock,
            session=SessionRuleSource(
                shared.load_session_rules, shared.clock, shared.environment.home
            ),
        ),
        ids=shared.ids,
        publish=partial(shared.publish, ref),
        headless=shared.headless,
        unattended=shared.unattended,
        reply_timeout_seconds=shared.reply_timeout_seconds,
        shared=PendingPermissions(store=pending_store),
    )
    questions = LocationQuestions(
        ids=shared.ids,
        publish=partial(shared.publish, ref),
        headless=shared.headless,
        unattended=shared.unattended,
        reply_timeout_seconds=shared.reply_timeout_seconds,
        store=pending_store,
    )
    servers = LanguageServers(ref.directory, processes=shared.servers, start=shared.start)
    mcp_servers = McpServers(
        ref.directory,
        services=shared.mcp,
        questions=questions,
        changed=lambda: shared.publish(ref, McpChanged()),
    )
    kept = _KeptServices(
        permissions,
        questions,
        _terminals(ref, shared),
        servers,
        mcp_servers,
        SkillFolders(shared.clock),
        CommandFiles(),
    )
    return _build(ref, shared, root=root, settings=settings, kept=kept)


def refresh_location(location: Location, shared: SharedServices) -> Location:
    """The Location under the current configuration; the same object when nothing changed.

    It also stays the same while the directories of its configuration cannot be looked at.
    """
    try:
        return _refresh(location, shared)
    except OSError as error:
        logger.warning("%s is used as it was: %s", location.ref.directory, error)
        return location


def _refresh(location: Location, shared: SharedServices) -> Location:
    ref = location.ref
    root = project.find_root(ref.directory, last_known=location.root)
    # The root changes when a repository is created or removed; then other documents apply.
    before = location.settings if root == location.root else None
    settings = shared.configuration.load(ref.directory, root=root, before=before)
    if settings is location.settings:
        return location
    kept = _KeptServices(
        location.permissions,
        location.questions,
        location.terminals,
        location.language_servers,
        location.mcp_servers,
        location.skill_folders,
        location.command_files,
    )
    return _build(ref, shared, root=root, settings=settings, kept=kept)


class _KeptServices(Value):
    """Services that survive a configuration change: pending requests, running programs, and what
    was read of files that cannot be looked at now."""

    permissions: LocationPermissions
    questions: LocationQuestions
    terminals: LocationTerminals
    language_servers: LanguageServers
    mcp_servers: McpServers
    skill_folders: SkillFolders
    command_files: CommandFiles


def _build(
    ref: LocationRef,
    shared: SharedServices,
    *,
    root: str,
    settings: Settings,
    kept: _KeptServices,
) -> Location:
    known_agents = agents.load(settings, shared.environment)
    permissions = kept.permissions.with_rules(known_agents.location_rules(ref.directory))
    look = _skill_directories(ref, shared, root, kept)
    known_skills = skills.open_skills(look, settings)
    references = _references(ref, shared, settings)
    services = ToolServices(
        directory=ref.directory,
        settings=settings,
        environment=shared.environment,
        permissions=permissions,
        questions=kept.questions,
        skills=AgentSkills(known_skills, known_agents.rules),
        references=references,
        subagents=None
        if shared.tasks is None
        else TaskAgents(CallableAgents(known_agents), shared.tasks),
        diagnoser=kept.language_servers,
        publish=partial(shared.publish, ref),
    )
    catalog, files = _catalog(shared, settings), shared.open_files(services)
    tools = LocationTools(shared.open_tools, services)
    kept.mcp_servers.configure(settings.mcp, partial(_server_environment, shared, files))
    location = Location(
        ref=ref,
        root=root,
        settings=settings,
        agents=known_agents,
        catalog=catalog,
        integrations=_integrations(shared, settings, catalog),
        permissions=permissions,
        questions=kept.questions,
        tools=tools,
        context=ContextRegistry(application=shared.context),
        instructions=Instructions(
            ref.directory, root=root, environment=shared.environment, reading=permissions.reading
        ),
        skills=known_skills,
        references=references,
        commands=_commands(shared, look, settings, kept.command_files),
        skill_folders=kept.skill_folders,
        command_files=kept.command_files,
        files=files,
        attachments=_attachments(shared, services, permissions, kept.mcp_servers),
        terminals=kept.terminals,
        language_servers=kept.language_servers,
        mcp_servers=kept.mcp_servers,
        mcp=McpTools(kept.mcp_servers, settings.mcp, tools.registry),
        projects=shared.projects,
        delegates=shared.tasks is not None,
    )
    _contribute(location, shared)
    return location


def _references(ref: LocationRef, shared: SharedServices, settings: Settings) -> References:
    return References(
        settings.references,
        directory=ref.directory,
        environment=shared.environment,
        repositories=shared.repositories,
    )


def _server_environment(shared: SharedServices, files: LocationFiles) -> ServerEnvironment:
    environment = files.environment
    return ServerEnvironment(
        variables=shared.environment.variables,
        project_variables=environment.variables or {},
        containment=environment.containment,
    )


def _attachments(
    shared: SharedServices,
    services: ToolServices,
    permissions: LocationPermissions,
    mcp_servers: McpServers,
) -> Attachments:
    typed = shared.open_files(replace(services, permissions=AttachmentPermissions(permissions)))
    read_resource = partial(resources.read_attached, mcp_servers)
    return Attachments(lambda: typed.environment, permissions, read_resource)


def _contribute(location: Location, shared: SharedServices) -> None:
    """Register the built-in Context Sources of a Location."""
    settings, context = location.settings, location.context
    builtins = partial(
        built_in.observe,
        location.info,
        platform=shared.platform,
        clock=shared.clock,
        timezone=settings.timezone,
    )
    context.contribute("core/builtins", builtins, immediate=True)
    context.contribute("core/instructions", location.instructions.observe, immediate=True)
    if settings.instructions:
        configured = ConfiguredInstructions(
            settings.instructions,
            root=location.root,
            environment=shared.environment,
            pages=shared.pages,
            allowed_hosts=settings.web.allowed_hosts,
            clock=shared.clock,
            reading=location.permissions.reading,
        )
        context.contribute("core/configured-instructions", configured.observe)


def _catalog(shared: SharedServices, settings: Settings) -> Catalog:
    return Catalog(
        settings,
        variables=shared.environment.variables,
        transport=shared.transport,
        clock=shared.clock,
        host_providers=shared.providers,
        credentials=shared.credentials,
        snapshot=shared.models,
        clouds=cloud_logins.make_cloud_logins(
            shared.environment, transport=shared.transport, clock=shared.clock
        ),
    )


def _integrations(shared: SharedServices, settings: Settings, catalog: Catalog) -> Integrations:
    return Integrations(
        catalog,
        logins=settings.logins,
        variables=shared.environment.variables,
        stored=dict if shared.credentials is None else shared.credentials.stored,
    )


def _terminals(ref: LocationRef, shared: SharedServices) -> LocationTerminals:
    return LocationTerminals(
        ref.directory,
        host=shared.terminals,
        ids=shared.ids,
        variables=shared.environment.variables,
        publish=partial(shared.publish, ref),
        start=shared.start,
    )


def _skill_directories(
    ref: LocationRef, shared: SharedServices, root: str, kept: _KeptServices
) -> SkillDirectories:
    return SkillDirectories(
        directory=ref.directory,
        root=root,
        environment=shared.environment,
        folders=kept.skill_folders,
        downloads=shared.skill_downloads,
    )


def _commands(
    shared: SharedServices, found_in: SkillDirectories, settings: Settings, files: CommandFiles
) -> Commands:
    return Commands(
        settings,
        directory=found_in.directory,
        root=found_in.root,
        environment=found_in.environment,
        trust=shared.configuration.trust,
        files=files,
    )


async def _find_place(projects: Projects, directory: str) -> SavedPlace | None:
    """Where approvals of a Location count; None while its place cannot be looked at."""
    try:
        found = place.find_place(directory)
    except OSError as error:
        logger.warning("saved approvals do not count in %s now: %s", directory, error)
        return None
    return SavedPlace((await projects.resolve(directory)).id, found.key, found.display_path)
