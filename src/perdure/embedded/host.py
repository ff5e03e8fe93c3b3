"""The embedded host: runtime, server application and client in one process, without a network.

A call of the host takes the same way as over HTTP: encoded, routed, checked, decoded. What needs
the same process (tools and plugins of the program) is on the same object. The host speaks decoded
values; `open_wire_host` opens one that speaks plain JSON.

Invariant: leaving the scope releases everything, and an error of the body leaves it unchanged.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Final, Generic, Literal, TypedDict, TypeVar, Unpack

from msgspec import UNSET
from msgspec.structs import replace

from perdure.client.client import Client
from perdure.client.conversation.requests import (
    Elsewhere,
    Handlers,
    PermissionHandler,
    QuestionHandler,
)
from perdure.client.wire_client import WireClient
from perdure.core import limits
from perdure.core.models import catalog
from perdure.core.models.catalog import CatalogProvider
from perdure.embedded.asgi_transport import AsgiTransport
from perdure.host import data_directory, environment
from perdure.host.credentials import secrets
from perdure.host.environment import Environment
from perdure.llm.model_call import ModelCall
from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.runtime.coordination.resumption import Resumes
from perdure.runtime.ops.metrics import Telemetry
from perdure.schema.approval.permission import Headless
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.server import app
from perdure.server.settings import ServerSettings

if TYPE_CHECKING:
    from perdure.embedded.program import ProgramTool
    from perdure.runtime.plugins.plugins import Plugins
    from perdure.tools.api.registry import ToolRegistry

_BASE_URL: Final = "http://localhost"


class Host(Client):
    """A client whose server is in the same process, with the tools and plugins of the program."""

    def __init__(
        self, runtime: Runtime, transport: AsgiTransport, handlers: Handlers | None = None
    ) -> None:
        super().__init__(_BASE_URL, transport=transport, handlers=handlers)
        self._runtime = runtime

    @property
    def tools(self) -> "ToolRegistry":
        """`with host.tools.register(tool):` offers a tool to every Session meanwhile."""
        return self._runtime.tools

    @property
    def plugins(self) -> "Plugins":
        """`host.plugins.add(plugin)` adds a plugin, or replaces the one of that name."""
        return self._runtime.plugins


class WireHost(WireClient):
    """The same host, with plain JSON values."""

    def __init__(self, runtime: Runtime, transport: AsgiTransport) -> None:
        super().__init__(_BASE_URL, transport=transport)
        self._runtime = runtime

    @property
    def tools(self) -> "ToolRegistry":
        """`with host.tools.register(tool):` offers a tool to every Session meanwhile."""
        return self._runtime.tools

    @property
    def plugins(self) -> "Plugins":
        """`host.plugins.add(plugin)` adds a plugin, or replaces the one of that name."""
        return self._runtime.plugins


C = TypeVar("C", Host, WireHost)
OpenRuntime = Callable[[RuntimeSettings], AbstractAsyncContextManager[Runtime]]


class HostOptions(TypedDict, total=False):
    """Options of `perdure.open` besides the project directory."""

    data_dir: str | None
    """Where everything is stored; the user's data directory, as for `perdure serve`, by default."""
    headless: Headless
    """`deny` refuses what a person would have to allow, `fail` ends the run; `wait`, the default,
    waits for a reply."""
    unattended: Headless
    """The same, while nothing reads the live events of this host; `wait` by default."""
    permission_timeout: float | None
    """Seconds to wait for a reply to a permission request; then it is refused. A day by default;
    None waits without a limit."""
    models: Mapping[str, ModelCall]
    """Models that the program itself answers for, by their names `provider/model`."""
    local_models: bool
    """Whether to look for model servers on this machine."""
    resumes: bool | Literal["directory"]
    """Whether to run the work that earlier processes left waiting; True by default. With
    `directory` only that of Sessions in the project directory."""
    finishes: bool
    """Whether leaving the scope first waits for what runs, for a while; False by default."""
    installed_plugins: bool
    """Whether to add the plugins that installed packages offer, as a server does."""
    telemetry: Telemetry | None
    """Where spans and metrics go, such as perdure.host.telemetry.OpenTelemetry()."""
    environment: Environment | None
    """The user's variables and directories; those of this process by default."""
    tools: "Sequence[ProgramTool]"
    """Tools of the program: typed functions, or what `perdure.tool` made of them."""
    system: str
    """What every Session is told besides the prompt of its agent."""
    providers: JsonObject
    """Providers and models, as in `providers` of a configuration, which takes precedence."""
    on_permission: PermissionHandler | Elsewhere | None
    """Decides about permissions for `ask` and `stream`; without it they are refused."""
    on_question: QuestionHandler | Elsewhere | None
    """Answers the questions of a model for `ask` and `stream`."""


def open_host(directory: str = ".", **options: Unpack[HostOptions]) -> "HostScope[Host]":
    """A host in this process that works in the project `directory`.

    ```python
    async with perdure.open(".") as host:
        print(await host.ask("list the files here", model="demo/demo"))
    ```

    Leaving the scope ends what runs and releases tasks, files and registrations. Work that was
    admitted and not finished goes on when a process opens the same data directory again. Raises
    TypeError for an unknown option.
    """
    settings = make_settings(directory, options)
    handlers = Handlers(
        permission=options.get("on_permission"), question=options.get("on_question")
    )
    return HostScope(
        lambda runtime, transport: Host(runtime, transport, handlers),
        settings,
        prepare=_make_prepare(options),
    )


def open_wire_host(directory: str = ".", **options: Unpack[HostOptions]) -> "HostScope[WireHost]":
    """The same host, with plain JSON values."""
    return HostScope(WireHost, make_settings(directory, options))


class HostScope(Generic[C]):
    """Opens on entry, closes on exit.

    The inner scopes end as if the body had succeeded, so that an error of the body comes out as it
    was raised and not in an exception group.
    """

    def __init__(
        self,
        client: Callable[[Runtime, AsgiTransport], C],
        settings: RuntimeSettings,
        open_runtime: OpenRuntime = open_runtime,
        *,
        prepare: Callable[[Runtime], None] | None = None,
    ) -> None:
        """`prepare` is called with the runtime before any client can use it."""
        self._client = client
        self._prepare = prepare
        self._settings = settings
        self._open_runtime = open_runtime
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> C:
        settings = self._settings
        async with AsyncExitStack() as stack:
            data_directory.prepare_directory(settings.data_dir)
            key = secrets.load_cursor_key(settings.data_dir)
            runtime = await stack.enter_async_context(self._open_runtime(settings))
            if self._prepare is not None:
                self._prepare(runtime)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            application = app.make_app(
                runtime,
                ServerSettings(default_directory=settings.default_directory, cursor_key=key),
            )
            host = self._client(runtime, AsgiTransport(application, tasks))
            stack.push_async_callback(host.aclose)
            stack.callback(application.begin_shutdown)
            self._stack = stack.pop_all()
        return host

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    if not TYPE_CHECKING:  # A type checker knows that these do not exist.

        def __enter__(self) -> None:
            raise TypeError(
                "perdure.open needs an event loop: write `async with perdure.open(...) as host:`,"
                " or without one `with perdure.open_blocking(...) as host:`"
            )

        def __exit__(self, *exc_info: object) -> None:
            """Never reached: entering fails."""

        def __getattr__(self, name: str) -> None:
            raise AttributeError(
                f"the host is not open, so it has no {name!r} yet: write"
                " `async with perdure.open(...) as host:` and use `host`"
            )


def make_settings(directory: str, options: HostOptions) -> RuntimeSettings:
    """The settings of a runtime that these options ask for. Raises TypeError for unknown ones."""
    if unknown := sorted(set(options) - HostOptions.__optional_keys__):
        # Imported here: a program that starts does not need it.
        import difflib

        close = difflib.get_close_matches(unknown[0], HostOptions.__optional_keys__, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"perdure.open has no option {unknown[0]!r}{hint}")
    found = options.get("environment") or environment.from_process()
    data_dir = options.get("data_dir")
    kept = found if data_dir is None else replace(found, data_dir=os.path.abspath(data_dir))
    return RuntimeSettings(
        environment=kept,
        data_dir=kept.data_dir,
        default_directory=os.path.abspath(directory),
        headless=options.get("headless", "wait"),
        unattended=options.get("unattended", "wait"),
        permission_timeout=options.get("permission_timeout", limits.PERMISSION_WAIT_SECONDS),
        providers=_providers(options.get("models", {})),
        local_models=options.get("local_models", False),
        resumes=_resumes(options.get("resumes", True)),
        finishes=options.get("finishes", False),
        installed_plugins=options.get("installed_plugins", False),
        telemetry=options.get("telemetry"),
    )


def _resumes(option: bool | Literal["directory"]) -> Resumes:
    if option == "directory":
        return "directory"
    return "all" if option else "none"


def _make_prepare(options: HostOptions) -> Callable[[Runtime], None] | None:
    """What adds the contributions of the program, if it has any: adding them loads the engine."""
    if not (options.get("tools") or options.get("system") or options.get("providers")):
        return None

    def prepare(runtime: Runtime) -> None:
        from perdure.embedded.program import ProgramPlugin

        runtime.plugins.add(
            ProgramPlugin(
                tools=options.get("tools", ()),
                system=options.get("system", ""),
                providers=options.get("providers", {}),
            )
        )

    return prepare


def _providers(models: Mapping[str, ModelCall]) -> tuple[CatalogProvider, ...]:
    by_provider: dict[str, dict[str, ModelCall]] = {}
    for name, call in models.items():
        model = ModelRef.parse(name)
        if model.variant is not UNSET:
            raise ValueError(f"{name!r} names a variant; a model of the program has none")
        by_provider.setdefault(model.provider_id, {})[model.id] = call
    return tuple(catalog.host_provider(name, calls) for name, calls in by_provider.items())
