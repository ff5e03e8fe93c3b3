"""The server as its users run it: a process of its own, started by the command line.

It can be killed like any other process. What it logs is kept in a file for the test to read.
"""

import asyncio
import re
import select
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, TextIO

from tests.support import fork_server
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.fork_server import Child
from tests.support.project import ProjectFolders

_PORT: Final = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")


class ServerProcess:
    def __init__(self, child: Child, port: int, log: Path, said: TextIO) -> None:
        self._child = child
        self._log = log
        self._said = said
        self.api = Api(port)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def kill(self) -> None:
        """Kill with SIGKILL: no handler runs, no buffer is written."""
        self._child.signal(signal.SIGKILL)
        assert await self._ended() == -signal.SIGKILL

    @contextmanager
    def suspended(self) -> Generator[None]:
        """Stop it with SIGSTOP for a while: it lives, and does nothing."""
        self._child.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if not self._child.has_ended:
                self._child.signal(signal.SIGCONT)

    async def stop(self) -> None:
        """Stop with SIGTERM; does nothing if the process has ended."""
        if self._child.has_ended:
            await self._ended()
        else:
            self._child.signal(signal.SIGTERM)
            assert await self._ended() == 0, self.log

    async def _ended(self) -> int:
        try:
            return await asyncio.to_thread(self._child.wait, PATIENCE_SECONDS)
        finally:
            self._said.close()


@asynccontextmanager
async def server_process(
    folders: ProjectFolders, name: str = "server", *, port: int = 0
) -> AsyncGenerator[ServerProcess]:
    server = await start(folders, name, port=port)
    try:
        yield server
    finally:
        await server.stop()


async def start(folders: ProjectFolders, name: str, *, port: int = 0) -> ServerProcess:
    """Start a server on `folders` and wait until it answers; the caller stops it.

    `port`: that of a server before it, for clients that stay; 0 takes a free one.
    """
    log = folders.data.parent / f"{name}.log"
    with log.open("ab") as errors:
        child, said = await asyncio.to_thread(
            fork_server.started,
            ("serve", "--port", str(port), "--no-auth", "--data-dir", str(folders.data)),
            variables=folders.variables,
            directory=folders.project,
            errors=errors.fileno(),
        )
    first = await asyncio.to_thread(_first_line, child, said)
    if (found := _PORT.search(first)) is None:
        child.end()
        said.close()
        raise AssertionError(f"{first!r} {log.read_text()}")
    return ServerProcess(child, int(found[1]), log, said)


def _first_line(child: Child, said: TextIO) -> str:
    """The first line of output; a process that prints none in time is killed."""
    if not select.select([said], [], [], PATIENCE_SECONDS)[0]:
        child.end()
    return said.readline()
