"""An editor and the agent that it has started, as a process of its own over pipes."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.clients.acp.editor import PATIENCE_SECONDS, Editor
from tests.clients.acp.published_schema import PublishedSchema
from tests.support.project import ProjectFolders
from tests.tidy.source_tree import ROOT

_LINE_BYTES_MAX = 64 * 1024 * 1024


class ProcessEditor(Editor):
    def __init__(self, schema: PublishedSchema, process: Process) -> None:
        super().__init__(schema)
        self.process = process

    def say(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def read(self) -> None:
        """Take every line of the process; each must be a message."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            await self.write(line.removesuffix(b"\n"))

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.process.wait()


def program(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "perdure", "acp", *arguments)


@asynccontextmanager
async def started(
    schema: PublishedSchema, folders: ProjectFolders, *arguments: str, log: Path | None = None
) -> AsyncGenerator[ProcessEditor]:
    """The agent as an editor starts it; it ends with the scope."""
    descriptor = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process = await asyncio.create_subprocess_exec(
        *program(*arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=descriptor,
        cwd=folders.project,
        env={**folders.variables, "PYTHONPATH": str(ROOT / "src")},
        limit=_LINE_BYTES_MAX,
    )
    os.close(descriptor)
    editor = ProcessEditor(schema, process)
    reading = asyncio.create_task(editor.read())
    try:
        yield editor
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
