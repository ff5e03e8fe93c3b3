"""Plugins: named contributions of a program to every Session that it hosts.

A plugin lists its contributions in `setup`; they take effect together or not at all. Adding a
plugin under the same name replaces the earlier one in a single step, so no Session sees a
half-finished reload. Contributions to the System Context appear, change and disappear at the next
Safe Provider-Turn Boundary of each Session; those to agents, providers and models apply from the
next turn on.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final, Protocol

from msgspec import UNSET

from perdure.core.settings.document import Document
from perdure.lazy_pattern import lazy_pattern
from perdure.location.config import plugin_documents
from perdure.location.config.plugin_documents import PluginDocuments
from perdure.location.context.registry import ContextRegistry, GuestProducer
from perdure.runtime.plugins.pty_environment import PtyEnvironment, PtyVariables
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Value
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.api.schema_tool import SchemaTool
from perdure.tools.api.tool import InputT, OutputT, Tool

_NAME: Final = lazy_pattern(r"[a-z0-9][a-z0-9._-]{0,63}")
_RESERVED: Final = frozenset({"core", "perdure", "opencode"})


class PluginError(ValueError):
    """The plugin cannot be added; the earlier plugin of that name stays."""


class PluginHost:
    """Takes the contributions of a plugin, during its `setup`."""

    def __init__(self, name: str, registries: "Registries") -> None:
        self._name = name
        self._registries = registries
        self.contributions: list[Callable[[], AbstractContextManager[None]]] = []

    def context(self, name: str, producer: GuestProducer) -> None:
        """Add texts to the System Context, with the key `<plugin>/<name>` or keys below it."""
        key = f"{self._name}/{name}"
        self.contributions.append(lambda: self._registries.context.register_guest(key, producer))

    def tool(self, tool: Tool[InputT, OutputT]) -> None:
        """Offer `tool` in every Session whose permissions allow it."""
        self.contributions.append(lambda: self._registries.tools.register(tool))

    def schema_tool(self, tool: SchemaTool) -> None:
        """Offer a tool whose input a JSON Schema describes; each call asks for permission."""
        self.contributions.append(lambda: self._registries.tools.register_schema(tool))

    def agent(self, name: str, options: JsonObject) -> None:
        """Add or change an agent; `options` are those of `agents` in a configuration.

        `model` may be a name, also with a variant ("provider/model#variant"), or a ModelRef. The
        configuration takes precedence. Raises PluginError for invalid options.
        """
        self._add_document(
            lambda: plugin_documents.make_agent_document(
                self._name, name, _with_model_name(options)
            )
        )

    def catalog(self, providers: JsonObject) -> None:
        """Add or change providers and models, as in `providers` of a configuration.

        A configuration takes precedence. Raises PluginError for invalid options.
        """
        self._add_document(lambda: plugin_documents.make_catalog_document(self._name, providers))

    def pty_environment(self, provide: PtyVariables) -> None:
        """Set variables for every new terminal."""
        self.contributions.append(
            lambda: self._registries.environment.register(self._name, provide)
        )

    def scope(self, make: Callable[[], AbstractContextManager[None]]) -> None:
        """Enter the scope that `make` returns while the plugin is added.

        `make` is called again if the plugin is restored after a failed reload.
        """
        self.contributions.append(make)

    def _add_document(self, read: Callable[[], Document]) -> None:
        try:
            document = read()
        except ValueError as error:
            raise PluginError(f"plugin {self._name!r}: {error}") from error
        self.contributions.append(lambda: self._registries.documents.register(document))


class Plugin(Protocol):
    @property
    def name(self) -> str:
        """Lower case; the namespace of everything it contributes."""
        ...

    def setup(self, host: PluginHost) -> None: ...


class Registries(Value):
    """Contributions that apply in every Location; those of a Location take precedence."""

    context: ContextRegistry
    tools: ToolRegistry
    """Tools of plugins and of the embedding program."""
    documents: PluginDocuments
    environment: PtyEnvironment


class Plugins:
    """`changed` is called when contributions to agents, providers or models change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.environment = PtyEnvironment()
        self.registries = Registries(
            ContextRegistry(), ToolRegistry(), PluginDocuments(changed), self.environment
        )
        self._added: dict[str, tuple[PluginHost, ExitStack]] = {}

    def add(self, plugin: Plugin) -> None:
        """Add a plugin, or replace the one with that name. Raises PluginError."""
        name = plugin.name
        if _NAME.fullmatch(name) is None or name in _RESERVED:
            raise PluginError(f"{name!r} cannot be the name of a plugin")
        host = PluginHost(name, self.registries)
        plugin.setup(host)
        before = self._added.pop(name, None)
        if before is not None:
            before[1].close()
        try:
            self._added[name] = host, _enter(host)
        except ValueError as error:
            if before is not None:
                self._added[name] = before[0], _enter(before[0])
            raise PluginError(f"plugin {name!r}: {error}") from error

    def remove(self, name: str) -> None:
        """Withdraw the contributions of a plugin; an unknown name is not an error."""
        _, scope = self._added.pop(name, (None, ExitStack()))
        scope.close()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._added))

    def close(self) -> None:
        """Remove every plugin, also if one of them raises."""
        with ExitStack() as removals:
            for name in self.names():
                removals.callback(self.remove, name)


def _with_model_name(options: JsonObject) -> JsonObject:
    """`options` with the model in the words of a configuration; raises ValueError."""
    model = options.get("model")
    if isinstance(model, str) and "#" in model:
        model = ModelRef.parse(model)
    if not isinstance(model, ModelRef):
        return options
    variant = {} if model.variant is UNSET else {"variant": model.variant}
    return {**options, **variant, "model": f"{model.provider_id}/{model.id}"}


def _enter(host: PluginHost) -> ExitStack:
    with ExitStack() as stack:
        for contribution in host.contributions:
            stack.enter_context(contribution())
        return stack.pop_all()
