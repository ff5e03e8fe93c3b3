"""Opening a Location: its services, joined once, and anew when the configuration changed.

Opening reads the configuration and nothing more: no process is started, tools are made when a
turn first needs them, and the project's identity is found when it is asked for. When the
configuration changes, the services are joined anew and the older ones stay as they are for the
turns that hold them; who waits for a person goes on waiting.
"""

import sys
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from perdure.core.approval import rules
from perdure.core.models.catalog import CatalogProvider
from perdure.core.settings.settings import Settings
from perdure.host.environment import Environment
from perdure.location.agents import agents
from perdure.location.agents.commands import Commands
from perdure.location.agents.context_source import CallableAgents
from perdure.location.approval.permissions import LocationPermissions, PendingPermissions
from perdure.location.approval.questions import LocationQuestions
from perdure.location.approval.stores import NoPendingStore, PendingStore, SavedRules
from perdure.location.config.config import Configuration
from perdure.location.context import built_in
from perdure.location.context.configured_instructions import ConfiguredInstructions
from perdure.location.context.instructions import Instructions
from perdure.location.context.registry import ContextRegistry
from perdure.location.location import Location
from perdure.location.models import cloud_logins
from perdure.location.models.catalog import Catalog
from perdure.location.models.credentials import Credentials
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.integrations import Integrations
from perdure.location.project import project
from perdure.location.project.project import Projects
from perdure.location.project.references import References
from perdure.location.project.repositories import Repositories
from perdure.location.skills import skills
from perdure.location.skills.context_source import AgentSkills
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.skills.skills import SkillDirectories, Skills
from perdure.location.tools.site import LocationTools, OpenTools, ToolSite
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
from perdure.ports.subagents import SubagentRunner
from perdure.ports.tasks import StartTask
from perdure.schema.approval.permission import Headless
from perdure.schema.ids import ProjectID
from perdure.schema.live_event import LiveEvent
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.tools.builtin.task import TaskAgents


class LocationHost(Value, kw_only=True):
    """What every Location of the process shares."""

    environment: Environment
    configuration: Configuration
    projects: Projects
    clock: Clock
    ids: IdSource
    transport: HttpTransport
    saved_rules: SavedRules
    publish: Callable[[LocationRef, LiveEvent], None]
    open_tools: OpenTools
    open_files: Callable[[ToolSite], LocationFiles]
    terminals: TerminalHost
    servers: PipedProcesses
    """How language servers are started."""
    start: StartTask
    """Runs something beside everything else, until it ends or the process does."""
    skill_downloads: SkillDownloads
    repositories: Repositories
    pages: WebPages
    context: ContextRegistry
    """What is contributed to the System Context of every Location."""
    tasks: SubagentRunner | None = None
    """Who sets subagents to work; without it there are none."""
    headless: Headless = "wait"
    patience_seconds: float | None = None
    """How long a person is waited for; for ever, if it is not said."""
    book: Callable[[LocationRef], PendingStore] = lambda ref: NoPendingStore()
    """Where it is written down who waits for a person."""
    platform: str = sys.platform
    providers: tuple[CatalogProvider, ...] = ()
    """What the host program brings beside the configured ones."""
    models: ModelFactsCache | None = None
    """What everybody knows about models; nothing, if there is none."""
    credentials: Credentials | None = None
    """What the user stored; None where nothing is."""


def open_location(ref: LocationRef, host: LocationHost) -> Location:
    """Join the services of an existing directory."""
    root = project.root_of(ref.directory)
    settings = host.configuration.load(ref.directory, root=root)
    book = host.book(ref)
    permissions = LocationPermissions(
        rules=lambda agent: rules.DENY_ALL,
        saved=host.saved_rules,
        project=partial(_project_id, host.projects, ref.directory),
        ids=host.ids,
        publish=partial(host.publish, ref),
        headless=host.headless,
        patience_seconds=host.patience_seconds,
        desk=PendingPermissions(book=book),
    )
    questions = LocationQuestions(
        ids=host.ids,
        publish=partial(host.publish, ref),
        headless=host.headless,
        patience_seconds=host.patience_seconds,
        book=book,
    )
    servers = LanguageServers(ref.directory, processes=host.servers, start=host.start)
    kept = _Kept(permissions, questions, _terminals(ref, host), servers)
    return _joined(ref, host, root=root, settings=settings, kept=kept)


def refreshed(location: Location, host: LocationHost) -> Location:
    """The Location under the configuration of now; the very same when nothing changed."""
    ref, root = location.ref, project.root_of(location.ref.directory)
    # Another root: a repository was made here, or is gone, and other documents count.
    before = location.settings if root == location.root else None
    settings = host.configuration.load(ref.directory, root=root, before=before)
    if settings is location.settings:
        return location
    kept = _Kept(
        location.permissions, location.questions, location.terminals, location.language_servers
    )
    return _joined(ref, host, root=root, settings=settings, kept=kept)


class _Kept(Value):
    """What stays when the configuration changes: people who wait, programs that run."""

    permissions: LocationPermissions
    questions: LocationQuestions
    terminals: LocationTerminals
    language_servers: LanguageServers


def _joined(
    ref: LocationRef,
    host: LocationHost,
    *,
    root: str,
    settings: Settings,
    kept: _Kept,
) -> Location:
    known_agents = agents.load(settings, host.environment)
    permissions, questions = kept.permissions.under(known_agents.rules), kept.questions
    found = _skills(ref, host, root, settings)
    named = References(
        settings.references,
        directory=ref.directory,
        environment=host.environment,
        repositories=host.repositories,
    )
    site = ToolSite(
        directory=ref.directory,
        settings=settings,
        environment=host.environment,
        permissions=permissions,
        questions=questions,
        skills=AgentSkills(found, known_agents.rules),
        references=named,
        subagents=None
        if host.tasks is None
        else TaskAgents(CallableAgents(known_agents), host.tasks),
        diagnoser=kept.language_servers,
        publish=partial(host.publish, ref),
    )
    catalog = _catalog(host, settings)
    location = Location(
        ref=ref,
        root=root,
        settings=settings,
        agents=known_agents,
        catalog=catalog,
        integrations=_integrations(host, settings, catalog),
        permissions=permissions,
        questions=questions,
        tools=LocationTools(host.open_tools, site),
        context=ContextRegistry(application=host.context),
        instructions=Instructions(ref.directory, root=root, environment=host.environment),
        skills=found,
        references=named,
        commands=Commands(
            settings, directory=ref.directory, root=root, environment=host.environment
        ),
        files=host.open_files(site),
        attachments=_attachments(host, site, permissions),
        terminals=kept.terminals,
        language_servers=kept.language_servers,
        projects=host.projects,
        delegates=host.tasks is not None,
    )
    _contribute(location, host)
    return location


def _attachments(
    host: LocationHost, site: ToolSite, permissions: LocationPermissions
) -> Attachments:
    typed = host.open_files(replace(site, permissions=AttachmentPermissions(permissions)))
    return Attachments(lambda: typed.environment, permissions)


def _contribute(location: Location, host: LocationHost) -> None:
    """What this program itself tells of a Location."""
    settings, context = location.settings, location.context
    builtins = partial(
        built_in.observe,
        location.info,
        platform=host.platform,
        clock=host.clock,
        timezone=settings.timezone,
    )
    context.contribute("core/builtins", builtins)
    context.contribute("core/instructions", location.instructions.observe)
    if settings.instructions:
        configured = ConfiguredInstructions(
            settings.instructions,
            root=location.root,
            environment=host.environment,
            pages=host.pages,
            allowed_hosts=settings.web.allowed_hosts,
            clock=host.clock,
        )
        context.contribute("core/configured-instructions", configured.observe)


def _catalog(host: LocationHost, settings: Settings) -> Catalog:
    return Catalog(
        settings,
        variables=host.environment.variables,
        transport=host.transport,
        clock=host.clock,
        host_providers=host.providers,
        credentials=host.credentials,
        snapshot=host.models,
        clouds=cloud_logins.of(host.environment, transport=host.transport, clock=host.clock),
    )


def _integrations(host: LocationHost, settings: Settings, catalog: Catalog) -> Integrations:
    return Integrations(
        catalog,
        logins=settings.logins,
        variables=host.environment.variables,
        stored=dict if host.credentials is None else host.credentials.stored,
    )


def _terminals(ref: LocationRef, host: LocationHost) -> LocationTerminals:
    return LocationTerminals(
        ref.directory,
        host=host.terminals,
        ids=host.ids,
        variables=host.environment.variables,
        publish=partial(host.publish, ref),
        start=host.start,
    )


def _skills(ref: LocationRef, host: LocationHost, root: str, settings: Settings) -> Skills:
    place = SkillDirectories(
        directory=ref.directory,
        root=root,
        environment=host.environment,
        clock=host.clock,
        downloads=host.skill_downloads,
    )
    return skills.find(place, settings)


async def _project_id(projects: Projects, directory: str) -> ProjectID:
    return (await projects.resolve(directory)).id
