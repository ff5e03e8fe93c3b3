"""The tools of a Location, made when a turn first needs them, and the services they use.

Which tools there are is decided by the `OpenTools` function (`built_in`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext

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


class ToolServices(Value, kw_only=True):
    """The services of a Location from which its tools are made."""

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


OpenTools = Callable[[ToolServices], AbstractContextManager[ToolRegistry]]
"""Makes the tools of a Location; ending the scope withdraws them."""


class LocationTools:
    """The tools of a Location, made on first use."""

    def __init__(self, open_tools: OpenTools, services: ToolServices) -> None:
        self._open_tools = open_tools
        self._services = services
        self._scope = ExitStack()
        self._registry: ToolRegistry | None = None

    def registry(self) -> ToolRegistry:
        if self._registry is None:
            self._registry = self._scope.enter_context(self._open_tools(self._services))
        return self._registry

    def over(self) -> "LocationTools":
        """Tools with a registry of their own that lies over this one."""
        return LocationTools(
            lambda services: nullcontext(ToolRegistry(application=self.registry())), self._services
        )

    def close(self) -> None:
        self._scope.close()
        self._registry = None
