"""The server as its users run it: a process of its own, started by the command line.

It can be killed like any other process. What it logs is kept in a file for the test to read.
"""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import perdure
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.place import Place

_SOURCE: Final = Path(perdure.__file__).parent.parent
_PORT: Final = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")


class ServerProcess:
    def __init__(self, process: asyncio.subprocess.Process, port: int, log: Path) -> None:
        self._process = process
        self._log = log
        self.api = Api(port)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def kill(self) -> None:
        """As the kernel does it: no handler runs, no buffer is written."""
        self._process.kill()
        assert await self._ended() == -signal.SIGKILL

    async def stop(self) -> None:
        """As an operator does it; nothing to do for one that was killed."""
        if self._process.returncode is None:
            self._process.terminate()
            assert await self._ended() == 0, self.log

    async def _ended(self) -> int:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._process.wait()


@asynccontextmanager
async def server_process(place: Place, name: str = "server") -> AsyncGenerator[ServerProcess]:
    server = await start(place, name)
    try:
        yield server
    finally:
        await server.stop()


async def start(place: Place, name: str) -> ServerProcess:
    """Start a server on `place` and wait until it answers; whoever starts it stops it."""
    log = place.data.parent / f"{name}.log"
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "perdure.cli.main", "serve"),
            *("--port", "0", "--no-auth", "--data-dir", str(place.data)),
            cwd=place.project,
            env=place.variables | {"PYTHONPATH": str(_SOURCE)},
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        said = await process.stdout.readline()
    found = _PORT.search(said)
    assert found is not None, f"{said!r} {log.read_text()}"
    return ServerProcess(process, int(found[1]), log)
