"""Embedded Perdure: runtime, routes and client in one process, joined without a network.

Every shared call takes the same way as over HTTP: encoded, routed, checked, decoded. What only
makes sense inside one process (tools of the application) stands beside it on the same object.
The client is the typed one; whoever wants plain values opens the wire client instead.

Invariant: leaving the scope releases everything, and an error of the body leaves it unchanged.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final, Generic, TypedDict, TypeVar, Unpack

from msgspec.structs import replace

from perdure.client import PerdureClient
from perdure.client.typed import TypedPerdureClient
from perdure.core.models import catalog
from perdure.core.models.catalog import CatalogProvider
from perdure.embedded.asgi_transport import AsgiTransport
from perdure.host import data_directory, environment
from perdure.host.credentials import secrets
from perdure.host.environment import Environment
from perdure.llm.model_call import ModelCall
from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.runtime.ops.metrics import Telemetry
from perdure.runtime.plugins.plugins import Plugins
from perdure.schema.approval.permission import Headless
from perdure.server import app, services
from perdure.server.settings import ServerSettings
from perdure.tools.api.registry import ToolRegistry

_BASE_URL: Final = "http://localhost"


class EmbeddedPerdure(TypedPerdureClient):
    """The typed client, and what only an embedding program can do."""

    def __init__(self, runtime: Runtime, carrier: AsgiTransport) -> None:
        super().__init__(_BASE_URL, transport=carrier)
        self.tools: ToolRegistry = runtime.tools
        """`with perdure.tools.register(tool):` offers a tool to every Session meanwhile."""
        self.plugins: Plugins = runtime.plugins
        """`perdure.plugins.add(plugin)` adds a plugin (see perdure.plugin), or replaces it."""


class EmbeddedWire(PerdureClient):
    """The same with plain values, for code that also speaks to servers elsewhere."""

    def __init__(self, runtime: Runtime, carrier: AsgiTransport) -> None:
        super().__init__(_BASE_URL, transport=carrier)
        self.tools: ToolRegistry = runtime.tools
        self.plugins: Plugins = runtime.plugins


C = TypeVar("C", EmbeddedPerdure, EmbeddedWire)


class EmbeddedOptions(TypedDict, total=False):
    """How to run, beside where. `data_dir` is where the server keeps its data unless named."""

    data_dir: str | None
    headless: Headless
    """`deny` refuses what a person would have to allow, instead of waiting for a reply."""
    permission_timeout: float | None
    """Wait that many seconds for a reply, and then refuse."""
    models: Mapping[str, ModelCall]
    """Yours to answer for, named `provider/model`."""
    local_models: bool
    """Look for servers of models on this machine."""
    resumes: bool
    """False leaves alone what was left waiting, also by other processes."""
    installed_plugins: bool
    """Add the plugins that installed packages offer, as a server does."""
    telemetry: Telemetry | None
    """Where spans and metrics go; perdure.host.telemetry.OpenTelemetry() is one."""
    surroundings: Environment | None


def open_embedded(
    directory: str = ".", **options: Unpack[EmbeddedOptions]
) -> "EmbeddedScope[EmbeddedPerdure]":
    """Embedded Perdure working in `directory`; `async with` it."""
    return EmbeddedScope(EmbeddedPerdure, _settings(directory, options))


def open_embedded_wire(
    directory: str = ".", **options: Unpack[EmbeddedOptions]
) -> "EmbeddedScope[EmbeddedWire]":
    """The same host, spoken to with plain values."""
    return EmbeddedScope(EmbeddedWire, _settings(directory, options))


class EmbeddedScope(Generic[C]):
    """Opens on entry, closes on exit.

    The scopes inside end as if the body had succeeded, so that its own error comes out as it was
    raised and not in a group.
    """

    def __init__(
        self, client: Callable[[Runtime, AsgiTransport], C], settings: RuntimeSettings
    ) -> None:
        self._client = client
        self._settings = settings
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> C:
        settings = self._settings
        async with AsyncExitStack() as stack:
            data_directory.prepare(settings.data_dir)
            key = secrets.load_cursor_key(settings.data_dir)
            runtime = await stack.enter_async_context(open_runtime(settings))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            application = app.make_app(
                services.of(runtime),
                ServerSettings(default_directory=settings.default_directory, cursor_key=key),
            )
            carrier = AsgiTransport(application, tasks)
            perdure = self._client(runtime, carrier)
            stack.push_async_callback(perdure.aclose)
            stack.callback(application.begin_shutdown)
            self._stack = stack.pop_all()
        return perdure

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()


def _settings(directory: str, options: EmbeddedOptions) -> RuntimeSettings:
    found = options.get("surroundings") or environment.from_process()
    data_dir = options.get("data_dir")
    kept = found if data_dir is None else replace(found, data_dir=os.path.abspath(data_dir))
    return RuntimeSettings(
        environment=kept,
        data_dir=kept.data_dir,
        default_directory=os.path.abspath(directory),
        headless=options.get("headless", "wait"),
        permission_timeout=options.get("permission_timeout"),
        providers=_providers(options.get("models", {})),
        local_models=options.get("local_models", False),
        resumes=options.get("resumes", True),
        installed_plugins=options.get("installed_plugins", False),
        telemetry=options.get("telemetry"),
    )


def _providers(models: Mapping[str, ModelCall]) -> tuple[CatalogProvider, ...]:
    by_provider: dict[str, dict[str, ModelCall]] = {}
    for name, call in models.items():
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise ValueError(f"a model is named provider/model; got {name!r}")
        by_provider.setdefault(provider, {})[model] = call
    return tuple(catalog.host_provider(name, calls) for name, calls in by_provider.items())
