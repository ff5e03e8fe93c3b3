"""Where the tools of a Location will work, and the tools, made when a turn first needs them.

Which tools those are is decided by whoever opens them (builtin_tools, plugins); what a Location has
beside them, by `opening`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from perdure.core.settings.settings import Settings
from perdure.host.environment import Environment
from perdure.location.project.references import References
from perdure.ports import (
    PermissionGate,
    Questioner,
)
from perdure.ports.skills import SkillLookup
from perdure.schema.live_event import LiveEvent
from perdure.schema.value import Value
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.builtin.task import TaskAgents
from perdure.tools.files.post_edit import Diagnoser


class ToolSite(Value, kw_only=True):
    """Where tools will work, for whoever makes them."""

    directory: str
    settings: Settings
    environment: Environment
    permissions: PermissionGate
    questions: Questioner
    skills: SkillLookup
    references: References | None = None
    subagents: TaskAgents | None = None
    diagnoser: Diagnoser | None = None
    publish: Callable[[LiveEvent], None] = lambda event: None


OpenTools = Callable[[ToolSite], AbstractContextManager[ToolRegistry]]
"""Makes the tools of a Location; leaving the scope withdraws them."""


class LocationTools:
    """The tools of a Location, made when they are first needed."""

    def __init__(self, open_tools: OpenTools, site: ToolSite) -> None:
        self._open_tools = open_tools
        self._site = site
        self._scope = ExitStack()
        self._registry: ToolRegistry | None = None

    def registry(self) -> ToolRegistry:
        if self._registry is None:
            self._registry = self._scope.enter_context(self._open_tools(self._site))
        return self._registry

    def close(self) -> None:
        self._scope.close()
        self._registry = None
