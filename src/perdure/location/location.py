"""Location: the services of one Location.

`factory` builds it, and builds it again when the configuration changes; `registry` holds the open
ones.
"""

from typing import Final

from perdure.core.approval.rules import Rules
from perdure.core.context import system_context
from perdure.core.context.system_context import Observation
from perdure.core.request.tool_output import OutputLimits
from perdure.core.session import subagent
from perdure.core.settings.settings import Settings
from perdure.location.agents import context_source as subagents
from perdure.location.agents.agents import Agents
from perdure.location.agents.command_files import CommandFiles
from perdure.location.agents.commands import Commands
from perdure.location.approval.permissions import LocationPermissions
from perdure.location.approval.questions import LocationQuestions
from perdure.location.context import built_in, configured_instructions, instructions
from perdure.location.context.instructions import Instructions
from perdure.location.context.registry import ContextRegistry, Subject
from perdure.location.mcp import context_source as mcp_context
from perdure.location.mcp.offered_tools import McpTools
from perdure.location.mcp.servers import McpServers
from perdure.location.models.catalog import Catalog
from perdure.location.models.integrations import Integrations
from perdure.location.project import references
from perdure.location.project.project import Projects
from perdure.location.project.references import References
from perdure.location.skills import context_source
from perdure.location.skills.skills import SkillFolders, Skills
from perdure.location.tools.location_tools import LocationTools
from perdure.location.workspace.attachments import Attachments
from perdure.location.workspace.files import LocationFiles
from perdure.location.workspace.language_servers import LanguageServers
from perdure.location.workspace.terminals import LocationTerminals
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.value import Value


class Location(Value, kw_only=True):
    ref: LocationRef
    root: str
    """The root directory of the project."""
    settings: Settings
    agents: Agents
    catalog: Catalog
    integrations: Integrations
    permissions: LocationPermissions
    questions: LocationQuestions
    tools: LocationTools
    context: ContextRegistry
    instructions: Instructions
    skills: Skills
    references: References
    commands: Commands
    skill_folders: SkillFolders
    command_files: CommandFiles
    files: LocationFiles
    attachments: Attachments
    terminals: LocationTerminals
    language_servers: LanguageServers
    mcp_servers: McpServers
    mcp: McpTools
    projects: Projects
    delegates: bool = False
    """Whether subagents can be called."""

    @property
    def output_limits(self) -> OutputLimits:
        return self.settings.tool_output

    async def info(self) -> LocationInfo:
        """The Location with its project, as clients see it."""
        return LocationInfo(
            directory=self.ref.directory,
            project=await self.projects.resolve(self.ref.directory),
            workspace_id=self.ref.workspace_id,
        )

    async def observe(self, subject: Subject) -> Observation:
        """Observe all Context Sources at a boundary: the Location's, then those of the turn."""
        listed_before = context_source.KEY in subject.admitted
        rules = None if subject.agent is None else self.agents.rules(subject.agent.id)
        observation = system_context.combine(
            await self.context.observe(subject),
            context_source.observe(
                self.skills,
                rules,
                listed_before=listed_before,
                reading=self.permissions.reading(subject.agent, subject.above, subject.rules),
            ),
            references.observe(self.references),
            subagents.observe(self.agents, subject) if self.delegates else (),
            await self.mcp.observe(self._rules(subject)),
            built_in.observe_model(subject),
        )
        if self.projects.is_unreadable(self.ref.directory):
            return _withhold(observation, subject, _SOURCES_OF_PROJECT)
        if any(document.unread for document in self.settings.documents):
            return _withhold(observation, subject, _SOURCES_OF_CONFIGURATION)
        return observation

    def _rules(self, subject: Subject) -> tuple[Rules, ...]:
        """The rules of the turn's agent, and those of the agents above it."""
        if subject.agent is None:
            return ()
        above = subagent.inherited_rules(subject.above, self.agents.rules)
        return (self.agents.rules(subject.agent.id), *above)

    def close(self) -> None:
        """Decline pending requests, withdraw the tools, and end terminals and servers."""
        self.permissions.close()
        self.questions.close()
        self.tools.close()
        self.terminals.close()
        self.language_servers.close()
        self.mcp_servers.close()


_SOURCES_OF_CONFIGURATION: Final = frozenset(
    {
        configured_instructions.CONFIGURED.key,
        context_source.KEY,
        references.KEY,
        subagents.KEY,
        mcp_context.TOOLS_KEY,
        mcp_context.INSTRUCTIONS_KEY,
    }
)
"""Sources that depend on what documents of the configuration say."""
_SOURCES_OF_PROJECT: Final = _SOURCES_OF_CONFIGURATION | {
    built_in.ENVIRONMENT.key,
    instructions.INSTRUCTIONS.key,
}
"""Sources that depend on where the root of the project is."""


def _withhold(observation: Observation, subject: Subject, keys: frozenset[str]) -> Observation:
    """While what sources depend on cannot be looked at, nothing new is told.

    A first turn need not wait for the disk: it is told what can be seen.
    """
    if not subject.admitted:
        return observation
    others = (observed for observed in observation if observed.key not in keys)
    return (*others, *map(system_context.unavailable, sorted(keys)))
