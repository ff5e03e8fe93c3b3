"""A client of `perdure mcp-server` that says exactly what a test wants, in either era."""

import asyncio
import itertools
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.support.api import PATIENCE_SECONDS
from tests.support.project import ProjectFolders

MODERN = "2026-07-28"


class WorkerClient:
    def __init__(self, process: asyncio.subprocess.Process, *, modern: bool, elicits: bool) -> None:
        self.process = process
        self.heard: list[JsonObject] = []
        self.is_killed = False
        self._capabilities: JsonObject = {"elicitation": {}} if elicits else {}
        self._modern = modern
        self._numbers = itertools.count(1)

    async def shake_hands(self, version: str = "2025-11-25") -> JsonObject:
        given: JsonObject = {"protocolVersion": version, "capabilities": self._capabilities}
        return await self.request("initialize", given)

    async def kill(self) -> None:
        self.is_killed = True
        self.process.kill()
        await self.process.wait()

    async def send(self, message: JsonValue | bytes) -> None:
        line = message if isinstance(message, bytes) else codec.encode(message)
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> JsonObject:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self.process.stdout.readline()
        assert line, "the server has ended"
        return codec.decode_any(line)

    async def begin(self, method: str, params: JsonObject) -> int:
        number = next(self._numbers)
        if self._modern:
            meta: JsonObject = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": self._capabilities,
                **params.get("_meta", {}),
            }
            params = {**params, "_meta": meta}
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    async def answer(self, number: int) -> JsonObject:
        """The answer to a request; what comes before it is in `heard`."""
        while True:
            message = await self.receive()
            if message.get("id") == number and "method" not in message:
                return message.get("result") or message["error"]
            self.heard.append(message)

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        return await self.answer(await self.begin(method, params))

    async def begin_call(self, name: str, /, **arguments: JsonValue) -> int:
        return await self.begin("tools/call", {"name": name, "arguments": arguments})

    async def call(self, name: str, /, **arguments: JsonValue) -> JsonObject:
        """What a tool returns; it must not fail."""
        result = await self.answer(await self.begin_call(name, **arguments))
        assert not result.get("isError", False), result
        return result["structuredContent"]

    async def fail(self, name: str, /, **arguments: JsonValue) -> str:
        result = await self.answer(await self.begin_call(name, **arguments))
        assert result["isError"], result
        return result["content"][0]["text"]


@asynccontextmanager
async def worker_client(
    folders: ProjectFolders, *options: str, modern: bool = False, elicits: bool = False
) -> AsyncGenerator[WorkerClient]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "perdure", "mcp-server", *options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=folders.variables,
        cwd=folders.project,
        limit=64 * 1024 * 1024,
    )
    client = WorkerClient(process, modern=modern, elicits=elicits)
    try:
        if not modern:
            await client.shake_hands()
        yield client
        if client.is_killed:
            return
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() == 0
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
