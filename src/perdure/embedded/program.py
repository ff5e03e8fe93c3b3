"""What a program that embeds the runtime adds to every Session, as a plugin."""

from collections.abc import Callable, Sequence
from typing import Final, cast

from perdure.location.context.registry import ContextText, Subject
from perdure.runtime.plugins.plugins import PluginHost
from perdure.schema.codec import JsonObject, JsonValue
from perdure.tools.api.function_tool import tool
from perdure.tools.api.tool import Tool

ProgramTool = Tool[JsonValue, JsonValue] | Callable[..., JsonValue]
"""A tool, or a typed function that becomes one."""

_NAME: Final = "program"
_SYSTEM: Final = "system"


class ProgramPlugin:
    """Implements runtime.plugins.Plugin."""

    name = _NAME

    def __init__(
        self,
        *,
        tools: Sequence[ProgramTool],
        system: str,
        providers: JsonObject,
    ) -> None:
        self._tools = [_as_tool(found) for found in tools]
        self._system = system
        self._providers = providers

    def setup(self, host: PluginHost) -> None:
        for found in self._tools:
            host.tool(found)
        if self._system:
            host.context(_SYSTEM, self._look)
        if self._providers:
            host.catalog(self._providers)

    async def _look(self, subject: Subject) -> Sequence[ContextText]:
        del subject
        return [ContextText(key=f"{_NAME}/{_SYSTEM}", text=self._system)]


def _as_tool(found: ProgramTool) -> Tool[JsonValue, JsonValue]:
    if isinstance(found, Tool):
        return cast("Tool[JsonValue, JsonValue]", found)
    return tool(found)
