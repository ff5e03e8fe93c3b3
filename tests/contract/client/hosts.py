"""The two ways to reach a runtime: over a socket and in memory. Tests run the same over both."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from perdure.client import PerdureClient
from perdure.embedded import open_embedded
from perdure.host import environment
from perdure.runtime.runtime import RuntimeSettings, open_runtime
from perdure.schema.codec import JsonObject
from perdure.server import services
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings

DEMO: Final[JsonObject] = {"providerID": "demo", "id": "demo"}
PATIENCE_SECONDS: Final = 20

OpenClient = Callable[[Path], AbstractAsyncContextManager[PerdureClient]]


@asynccontextmanager
async def over_network(root: Path) -> AsyncGenerator[PerdureClient]:
    settings = RuntimeSettings(
        environment=environment.from_process(),
        data_dir=str(root / "data"),
        default_directory=str(project(root)),
    )
    stop = asyncio.Event()
    port = asyncio.get_running_loop().create_future()
    async with open_runtime(settings) as runtime, asyncio.TaskGroup() as tasks:
        server = ServerSettings(default_directory=settings.default_directory, cursor_key=b"k" * 32)
        tasks.create_task(serve(services.of(runtime), server, ready=port.set_result, stop=stop))
        try:
            async with PerdureClient(f"http://127.0.0.1:{await port}") as client:
                yield client
        finally:
            stop.set()


@asynccontextmanager
async def in_memory(root: Path) -> AsyncGenerator[PerdureClient]:
    async with open_embedded(str(project(root)), data_dir=str(root / "data")) as perdure:
        yield perdure


def project(root: Path) -> Path:
    directory = root / "project"
    directory.mkdir(exist_ok=True)
    (directory / "one.txt").write_text("one\n", encoding="utf-8")
    return directory
