"""A whole server inside the test's process: the real runtime on real files behind a real port."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from perdure.core import limits
from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.project import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    api: Api
    place: Place
    runtime: Runtime
    stop: asyncio.Event
    """Set it to stop serving, as a signal would."""


@asynccontextmanager
async def running(
    place: Place,
    *,
    password: str | None = None,
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX,
    heartbeat_seconds: float = limits.HEARTBEAT_SECONDS,
) -> AsyncGenerator[Instance]:
    settings = ServerSettings(
        default_directory=str(place.project),
        cursor_key=b"k" * 32,
        password=password,
        body_bytes_max=body_bytes_max,
        heartbeat_seconds=heartbeat_seconds,
    )
    port = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    async with _runtime(place) as runtime, asyncio.TaskGroup() as group:
        group.create_task(serve(runtime, settings, ready=port.set_result, stop=stop))
        async with asyncio.timeout(PATIENCE_SECONDS):
            api = Api(await port)
        try:
            yield Instance(api=api, place=place, runtime=runtime, stop=stop)
        finally:
            stop.set()


@asynccontextmanager
async def _runtime(place: Place) -> AsyncGenerator[Runtime]:
    settings = RuntimeSettings(
        environment=place.environment,
        data_dir=str(place.data),
        default_directory=str(place.project),
    )
    async with open_runtime(settings) as runtime:
        yield runtime
