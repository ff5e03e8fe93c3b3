"""Plugins: what a program adds to every Session it hosts, under a name of its own.

A plugin says what it contributes; nothing of it takes effect before all of it can. Adding one
again under the same name replaces the earlier one in a single step, so that a reload is never
seen half done. What it contributes to the System Context appears, changes and disappears at the
next Safe Provider-Turn Boundary of each Session, as its own words.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final, Protocol

from perdure.location.context_registry import ContextRegistry, GuestProducer
from perdure.tools.registry import ToolRegistry
from perdure.tools.tool import InputT, OutputT, Tool

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED: Final = frozenset({"core", "perdure", "opencode"})


class PluginError(ValueError):
    """The plugin cannot be added; whatever was there before still is."""


class PluginHost:
    """What a plugin may contribute to. Valid during its `setup`."""

    def __init__(self, name: str, context: ContextRegistry, tools: ToolRegistry) -> None:
        self._name = name
        self._context = context
        self._tools = tools
        self.contributions: list[Callable[[], AbstractContextManager[None]]] = []

    def context(self, name: str, producer: GuestProducer) -> None:
        """Tell every Session of it: texts with the key `<plugin>/<name>`, or keys below that."""
        key = f"{self._name}/{name}"
        self.contributions.append(lambda: self._context.register_guest(key, producer))

    def tool(self, tool: Tool[InputT, OutputT]) -> None:
        """Offer `tool` everywhere, where permissions allow it."""
        self.contributions.append(lambda: self._tools.register(tool))


class Plugin(Protocol):
    @property
    def name(self) -> str:
        """Lower case; the namespace of everything it contributes."""
        ...

    def setup(self, host: PluginHost) -> None: ...


class Plugins:
    def __init__(self, context: ContextRegistry, tools: ToolRegistry) -> None:
        self._context = context
        self._tools = tools
        self._added: dict[str, tuple[PluginHost, ExitStack]] = {}

    def add(self, plugin: Plugin) -> None:
        """Add, or put in the place of the one with that name. Raises PluginError."""
        name = plugin.name
        if _NAME.fullmatch(name) is None or name in _RESERVED:
            raise PluginError(f"{name!r} cannot be the name of a plugin")
        host = PluginHost(name, self._context, self._tools)
        plugin.setup(host)
        before = self._added.pop(name, None)
        if before is not None:
            before[1].close()
        try:
            self._added[name] = host, _entered(host)
        except ValueError as error:
            if before is not None:
                self._added[name] = before[0], _entered(before[0])
            raise PluginError(f"plugin {name!r}: {error}") from error

    def remove(self, name: str) -> None:
        """Withdraw everything it contributed; nothing to do for an unknown name."""
        _, scope = self._added.pop(name, (None, ExitStack()))
        scope.close()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._added))

    def close(self) -> None:
        for name in self.names():
            self.remove(name)


def _entered(host: PluginHost) -> ExitStack:
    with ExitStack() as stack:
        for contribution in host.contributions:
            stack.enter_context(contribution())
        return stack.pop_all()
