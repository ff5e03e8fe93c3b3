"""What a plugin is written against: context it tells, tools, agents and models, the host it meets.

class Weather:
    name = "weather"

    def setup(self, host: PluginHost) -> None:
        host.context("now", self.look)

    async def look(self, subject: Subject) -> list[ContextText]:
        return [ContextText(key="weather/now", text="It rains.", removed="Weather unknown.")]
"""

from perdure.location.context.registry import ContextText, Subject
from perdure.runtime.plugins.plugins import Plugin, PluginError, PluginHost
from perdure.schema.location import LocationRef
from perdure.tools.api.function_tool import tool
from perdure.tools.api.registry import ToolRegistrationError
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure

__all__ = [
    "ContextText",
    "LocationRef",
    "Plugin",
    "PluginError",
    "PluginHost",
    "Subject",
    "Tool",
    "ToolCallContext",
    "ToolFailure",
    "ToolRegistrationError",
    "tool",
]
