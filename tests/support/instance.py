"""A whole server inside the test's process: the real runtime on real files behind a real port."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass

from perdure.core import limits
from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.schema.ids import SessionID
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings
from tests.harness.checkers.grammar import LogGrammar
from tests.harness.checkers.ledger import Ledger
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.project import ProjectFolders


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    api: Api
    folders: ProjectFolders
    runtime: Runtime
    stop: asyncio.Event
    """Set it to stop serving, as a signal would."""


@asynccontextmanager
async def running(
    folders: ProjectFolders,
    *,
    port: int = 0,
    password: str | None = None,
    origins: Collection[str] = (),
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX,
    heartbeat_seconds: float = limits.HEARTBEAT_SECONDS,
    damaged: bool = False,
    web_directory: str = "/nowhere",
) -> AsyncGenerator[Instance]:
    """`damaged`: the test has damaged the log, so that its order cannot be checked afterwards."""
    settings = ServerSettings(
        default_directory=str(folders.project),
        cursor_key=b"k" * 32,
        port=port,
        password=password,
        allowed_origins=frozenset(origins),
        body_bytes_max=body_bytes_max,
        heartbeat_seconds=heartbeat_seconds,
        web_directory=web_directory,
    )
    listening = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    checked = nullcontext() if damaged else _checked_logs(folders)
    async with checked, _runtime(folders) as runtime, asyncio.TaskGroup() as group:
        group.create_task(serve(runtime, settings, ready=listening.set_result, stop=stop))
        async with asyncio.timeout(PATIENCE_SECONDS):
            api = Api(await listening)
        try:
            yield Instance(api=api, folders=folders, runtime=runtime, stop=stop)
        finally:
            stop.set()


@asynccontextmanager
async def _checked_logs(folders: ProjectFolders) -> AsyncGenerator[None]:
    """When the test has passed: every log is in order, and the server left nothing open."""
    yield
    if not folders.database.exists():
        return
    with closing(Ledger(str(folders.database))) as ledger:
        logs: dict[SessionID, LogGrammar] = defaultdict(LogGrammar)
        for item in ledger.new_events():
            faults = list(logs[item.session_id].read(item.seq, item.event))
            assert not faults, f"{item.session_id}: {faults}"
        # A call that waits for a person goes on waiting, in the next server.
        waiting = {row.request.session_id for row in ledger.pending()}
    for session_id, log in logs.items():
        assert session_id in waiting or list(log.unfinished()) == [], session_id


@asynccontextmanager
async def _runtime(folders: ProjectFolders) -> AsyncGenerator[Runtime]:
    settings = RuntimeSettings(
        environment=folders.environment,
        data_dir=str(folders.data),
        default_directory=str(folders.project),
    )
    async with open_runtime(settings) as runtime:
        yield runtime
