"""The bot of docs/howto/bot.md, killed in the middle and started again on the same data."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.embedded.host import open_wire_host
from tests.contract.client.hosts import PATIENCE_SECONDS, plain, project
from tests.contract.client.test_howto import SOURCE, blocks
from tests.requirements import requirement


class RunningBot:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def tell(self, chat: str, message: str, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{chat}\t{message}\t{text}\n".encode())
        await self._process.stdin.drain()

    async def line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await self._process.stdout.readline()).decode().rstrip("\n")

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def bot(root: Path) -> AsyncGenerator[RunningBot]:
    source = dict(blocks())["bot-1"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-c", source),
        cwd=project(root),
        env={**os.environ, "PYTHONPATH": str(SOURCE), "BOT_DATA": str(root / "data")},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = RunningBot(process)
    try:
        assert await running.line() == "listening"
        yield running
    finally:
        await running.kill()


@requirement("S156")
async def test_a_bot_that_was_killed_answers_what_it_is_told_again_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    async with bot(tmp_path) as first:
        await first.tell("room-1", "1", "list the files here")
        answered = await first.line()
        await first.tell("room-1", "2", "list the files here")
        await first.tell("room-2", "1", "list the files here")
        # It dies at whatever it is doing by now.
        await first.kill()
    async with bot(tmp_path) as second:
        for chat, message in (("room-1", "1"), ("room-1", "2"), ("room-2", "1"), ("room-1", "2")):
            await second.tell(chat, message, "list the files here")
        said = [await second.line() for _ in range(4)]
    assert "one.txt" in answered
    assert said[0] == answered
    assert [line.split("\t")[:2] for line in said] == [
        ["room-1", "1"],
        ["room-1", "2"],
        ["room-2", "1"],
        ["room-1", "2"],
    ]
    assert said[1] == said[3]
    assert await prompts(tmp_path) == [1, 2]


async def prompts(root: Path) -> list[int]:
    """How many prompts each Session has, the fewest first."""
    async with open_wire_host(str(project(root)), data_dir=str(root / "data")) as perdure:
        found: list[int] = []
        for session in (await perdure.sessions.list()).items:
            page = await perdure.sessions.messages(session["id"], order="asc", limit=100)
            found.append(sum(plain(message)["type"] == "user" for message in page.items))
        return sorted(found)
