"""Plugins: what a program adds to every Session it hosts, under a name of its own.

A plugin says what it contributes; nothing of it takes effect before all of it can. Adding one
again under the same name replaces the earlier one in a single step, so that a reload is never
seen half done. What it contributes to the System Context appears, changes and disappears at the
next Safe Provider-Turn Boundary of each Session, as its own words; what it says of agents,
providers and models counts from the next turn on.
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final, Protocol

from perdure.core.settings.document import Document
from perdure.location.config import plugin_documents
from perdure.location.config.plugin_documents import PluginDocuments
from perdure.location.context.registry import ContextRegistry, GuestProducer
from perdure.runtime.plugins.pty_environment import PtyEnvironment, PtyVariables
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.api.tool import InputT, OutputT, Tool

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED: Final = frozenset({"core", "perdure", "opencode"})


class PluginError(ValueError):
    """The plugin cannot be added; whatever was there before still is."""


class PluginHost:
    """What a plugin may contribute to. Valid during its `setup`."""

    def __init__(self, name: str, registries: "Registries") -> None:
        self._name = name
        self._to = registries
        self.contributions: list[Callable[[], AbstractContextManager[None]]] = []

    def context(self, name: str, producer: GuestProducer) -> None:
        """Tell every Session of it: texts with the key `<plugin>/<name>`, or keys below that."""
        key = f"{self._name}/{name}"
        self.contributions.append(lambda: self._to.context.register_guest(key, producer))

    def tool(self, tool: Tool[InputT, OutputT]) -> None:
        """Offer `tool` everywhere, where permissions allow it."""
        self.contributions.append(lambda: self._to.tools.register(tool))

    def agent(self, name: str, options: JsonObject) -> None:
        """Add an agent, or change one: `options` as in `agents` of a configuration, and below it.

        Raises PluginError when they make no sense.
        """
        self._say(lambda: plugin_documents.make_agent_document(self._name, name, options))

    def catalog(self, providers: JsonObject) -> None:
        """Add providers and models, or change them: as in `providers` of a configuration, and
        below it. Raises PluginError when that makes no sense.
        """
        self._say(lambda: plugin_documents.make_catalog_document(self._name, providers))

    def pty_environment(self, provide: PtyVariables) -> None:
        """Lay variables over those of every new terminal."""
        self.contributions.append(lambda: self._to.environment.register(self._name, provide))

    def scope(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        """Enter what `make` gives when the plugin takes effect, and leave it with the plugin.

        It is made again if the plugin has to be put back, after a reload that failed.
        """
        self.contributions.append(make)

    def _say(self, read: Callable[[], Document]) -> None:
        try:
            document = read()
        except ValueError as error:
            raise PluginError(f"plugin {self._name!r}: {error}") from error
        self.contributions.append(lambda: self._to.documents.register(document))


class Plugin(Protocol):
    @property
    def name(self) -> str:
        """Lower case; the namespace of everything it contributes."""
        ...

    def setup(self, host: PluginHost) -> None: ...


class Registries(Value):
    """What holds in every Location of the process, below what the Location itself says."""

    context: ContextRegistry
    tools: ToolRegistry
    """Plugins register here, and so does the embedding program."""
    documents: PluginDocuments
    environment: PtyEnvironment


class Plugins:
    """`changed` is called when what they say of agents, providers or models has changed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.environment = PtyEnvironment()
        self.registries = Registries(
            ContextRegistry(), ToolRegistry(), PluginDocuments(changed), self.environment
        )
        self._added: dict[str, tuple[PluginHost, ExitStack]] = {}

    def add(self, plugin: Plugin) -> None:
        """Add, or put in the place of the one with that name. Raises PluginError."""
        name = plugin.name
        if _NAME.fullmatch(name) is None or name in _RESERVED:
            raise PluginError(f"{name!r} cannot be the name of a plugin")
        host = PluginHost(name, self.registries)
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
        """Withdraw all of them, also if one fails at it."""
        with ExitStack() as all_of_them:
            for name in self.names():
                all_of_them.callback(self.remove, name)


def _entered(host: PluginHost) -> ExitStack:
    with ExitStack() as stack:
        for contribution in host.contributions:
            stack.enter_context(contribution())
        return stack.pop_all()
