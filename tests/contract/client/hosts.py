"""The two ways to reach a runtime: over a socket and in memory. Tests run the same over both."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from perdure.client import PerdureClient
from perdure.client.generated.types import ModelRef
from perdure.client.typed import TypedPerdureClient
from perdure.embedded import open_embedded, open_embedded_wire
from perdure.host import environment
from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.schema.codec import JsonValue
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings

DEMO: Final[ModelRef] = {"providerID": "demo", "id": "demo"}
PATIENCE_SECONDS: Final = 20

OpenClient = Callable[[Path], AbstractAsyncContextManager[PerdureClient]]


@asynccontextmanager
async def served(root: Path) -> AsyncGenerator[str]:
    """The address of a server on a real socket."""
    settings = RuntimeSettings(
        environment=environment.from_process(),
        data_dir=str(root / "data"),
        default_directory=str(project(root)),
    )
    stop = asyncio.Event()
    port = asyncio.get_running_loop().create_future()
    async with open_runtime(settings) as runtime, asyncio.TaskGroup() as tasks:
        server = ServerSettings(default_directory=settings.default_directory, cursor_key=b"k" * 32)
        tasks.create_task(serve(runtime, server, ready=port.set_result, stop=stop))
        try:
            yield f"http://127.0.0.1:{await port}"
        finally:
            stop.set()


@asynccontextmanager
async def over_network(root: Path) -> AsyncGenerator[PerdureClient]:
    async with served(root) as url, PerdureClient(url) as client:
        yield client


@asynccontextmanager
async def typed_over_network(root: Path) -> AsyncGenerator[TypedPerdureClient]:
    async with served(root) as url, TypedPerdureClient(url) as client:
        yield client


@asynccontextmanager
async def typed_in_memory(root: Path) -> AsyncGenerator[TypedPerdureClient]:
    async with open_embedded(str(project(root)), data_dir=str(root / "data")) as perdure:
        yield perdure


@asynccontextmanager
async def in_memory(root: Path) -> AsyncGenerator[PerdureClient]:
    async with open_embedded_wire(str(project(root)), data_dir=str(root / "data")) as perdure:
        yield perdure


def plain(value: object) -> JsonValue:
    """A value that is looked at by its members, whichever kind of a union it is."""
    return value


def project(root: Path) -> Path:
    directory = root / "project"
    directory.mkdir(exist_ok=True, parents=True)
    (directory / "one.txt").write_text("one\n", encoding="utf-8")
    return directory
