"""Embedded Perdure: runtime, routes and client in one process, joined without a network.

Every shared call takes the same way as over HTTP: encoded, routed, checked, decoded. What only
makes sense inside one process (tools of the application) stands beside it on the same object.

Invariant: leaving the scope releases everything, and an error of the body leaves it unchanged.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from msgspec.structs import replace

from perdure.client import PerdureClient
from perdure.core import catalog
from perdure.core.catalog import CatalogProvider
from perdure.embedded.memory_transport import MemoryTransport
from perdure.host import data_directory, environment, secrets_file
from perdure.host.environment import Environment
from perdure.llm.model_call import ModelCall
from perdure.runtime.plugins import Plugins
from perdure.runtime.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.schema.permission import Headless
from perdure.server import app, services
from perdure.server.settings import ServerSettings
from perdure.tools.registry import ToolRegistry

_BASE_URL: Final = "http://localhost"


class EmbeddedPerdure(PerdureClient):
    """The client, and what only an embedding program can do."""

    def __init__(self, runtime: Runtime, transport: MemoryTransport) -> None:
        # Compressing for a reader in the same memory is work for nothing.
        super().__init__(_BASE_URL, headers={"accept-encoding": "identity"}, transport=transport)
        self.tools: ToolRegistry = runtime.tools
        """`with perdure.tools.register(tool):` offers a tool to every Session meanwhile."""
        self.plugins: Plugins = runtime.plugins
        """`perdure.plugins.add(plugin)` adds a plugin (see perdure.plugin), or replaces it."""


def open_embedded(
    directory: str = ".",
    *,
    data_dir: str | None = None,
    headless: Headless = "wait",
    models: Mapping[str, ModelCall] | None = None,
    local_models: bool = False,
    resumes: bool = True,
    surroundings: Environment | None = None,
) -> "EmbeddedScope":
    """Embedded Perdure working in `directory`; `async with` it.

    `data_dir` is where the server keeps its data unless another is named. `headless="deny"`
    refuses what a person would have to allow, instead of waiting for a reply. `models` are yours
    to answer for, named `provider/model`; `local_models` looks for servers on this machine.
    `resumes=False` leaves alone what was left waiting, also by other processes.
    """
    found = surroundings or environment.from_process()
    kept = found if data_dir is None else replace(found, data_dir=os.path.abspath(data_dir))
    return EmbeddedScope(
        RuntimeSettings(
            environment=kept,
            data_dir=kept.data_dir,
            default_directory=os.path.abspath(directory),
            headless=headless,
            providers=_providers(models or {}),
            local_models=local_models,
            resumes=resumes,
        )
    )


def _providers(models: Mapping[str, ModelCall]) -> tuple[CatalogProvider, ...]:
    by_provider: dict[str, dict[str, ModelCall]] = {}
    for name, call in models.items():
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise ValueError(f"a model is named provider/model; got {name!r}")
        by_provider.setdefault(provider, {})[model] = call
    return tuple(catalog.supplied_provider(name, calls) for name, calls in by_provider.items())


class EmbeddedScope:
    """Opens on entry, closes on exit.

    The scopes inside end as if the body had succeeded, so that its own error comes out as it was
    raised and not in a group.
    """

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> EmbeddedPerdure:
        settings = self._settings
        async with AsyncExitStack() as stack:
            data_directory.prepare(settings.data_dir)
            key = secrets_file.cursor_key(settings.data_dir)
            runtime = await stack.enter_async_context(open_runtime(settings))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            application = app.make_app(
                services.of(runtime),
                ServerSettings(default_directory=settings.default_directory, cursor_key=key),
            )
            transport = MemoryTransport(application, tasks)
            perdure = await stack.enter_async_context(EmbeddedPerdure(runtime, transport))
            stack.callback(application.begin_shutdown)
            self._stack = stack.pop_all()
        return perdure

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()
