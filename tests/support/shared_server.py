"""One server for a whole module of tests, in a thread with an event loop of its own.

For tests that only use it over its port and leave it unchanged, so that none depends on the order.
A test that needs the runtime itself, or the script of the provider, uses an Instance.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import scripted_provider


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServer:
    api: Api
    folders: ProjectFolders


@contextmanager
def shared_server(
    root: Path,
    prepare: Callable[[Api], Awaitable[None]] | None = None,
    *,
    password: str | None = None,
) -> Generator[SharedServer]:
    """A server with its folders below `root`, after `prepare` has put something into it."""
    ready: Future[tuple[SharedServer, Callable[[], object]]] = Future()

    async def run_server() -> None:
        async with scripted_provider() as provider:
            folders = make_folders(root, provider)
            async with running(folders, password=password) as instance:
                if prepare is not None:
                    await prepare(instance.api)
                loop = asyncio.get_running_loop()
                stop = partial(loop.call_soon_threadsafe, instance.stop.set)
                ready.set_result((SharedServer(api=instance.api, folders=folders), stop))
                await instance.stop.wait()

    with ThreadPoolExecutor(1) as thread:
        running_server = thread.submit(lambda: asyncio.run(run_server()))
        running_server.add_done_callback(lambda _: ready.cancel())
        try:
            server, stop = ready.result(PATIENCE_SECONDS)
        except CancelledError:
            running_server.result()
            raise
        try:
            yield server
        finally:
            stop()
            running_server.result(PATIENCE_SECONDS)
