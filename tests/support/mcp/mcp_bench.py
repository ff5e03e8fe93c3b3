"""MCP servers of one Location, with real processes and without the rest of the runtime."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from perdure.core.settings import document as config_document
from perdure.core.settings import mcp_servers
from perdure.core.settings.mcp_servers import McpSettings
from perdure.host.mcp.connector import LocalMcpConnector
from perdure.host.process.piped import LocalPipedProcesses
from perdure.location.mcp.offered_tools import McpTools
from perdure.location.mcp.servers import McpServers, McpServices, ServerEnvironment
from perdure.location.mcp.tool_lists import MemoryToolLists
from perdure.ports import PermissionAsk, QuestionAsk, QuestionBlockedError
from perdure.schema.approval.question import Answers
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.settings.mcp import McpServerInfo
from perdure.tools.api.registry import Settled, ToolRegistry
from perdure.tools.api.tool import Progress, ToolCallContext
from tests.contract.tools.tool_bench import CONTEXT
from tests.support.mcp import scripted_server


def scripted(mode: str, journal: Path, **fields: JsonValue) -> JsonObject:
    """The entry of the scripted server in a configuration."""
    command = [sys.executable, scripted_server.__file__, mode, str(journal)]
    return {"type": "local", "command": command, **fields}


def heard(journal: Path) -> list[dict[str, Any]]:
    """What the scripted server has noted so far."""
    return [json.loads(line) for line in journal.read_text().splitlines()]


class AnsweringPerson:
    """Implements ports.Questioner with answers that are given before."""

    def __init__(self) -> None:
        self.answers: list[Answers | Exception] = []
        self.asked: list[QuestionAsk] = []

    async def ask(self, ask: QuestionAsk) -> Answers:
        self.asked.append(ask)
        answer = self.answers.pop(0) if self.answers else QuestionBlockedError("not there")
        if isinstance(answer, Exception):
            raise answer
        return answer


class McpBench:
    def __init__(self, directory: Path, lists: MemoryToolLists | None = None) -> None:
        self.directory = directory
        self.lists = lists or MemoryToolLists()
        self.person = AnsweringPerson()
        self.changes = asyncio.Event()
        self.reports: list[Progress] = []
        self.asked: list[PermissionAsk] = []
        self.registry = ToolRegistry()
        self._tasks = set[asyncio.Task[None]]()
        self.servers = McpServers(
            str(directory),
            services=McpServices(
                connector=LocalMcpConnector(LocalPipedProcesses()),
                lists=self.lists,
                start=self._start,
            ),
            questions=self.person,
            changed=self.changes.set,
        )
        self.tools = McpTools(self.servers, McpSettings(), lambda: self.registry)

    def configure(self, **servers: JsonObject) -> None:
        self.apply({"mcp": {"servers": servers}})

    def apply(self, written: JsonObject) -> None:
        read = config_document.read("/user/opencode.json", "user", written)
        assert read.problems == ()
        settings = mcp_servers.configured_servers((read,))
        environment = ServerEnvironment(
            variables=dict(os.environ), project_variables={}, containment=None
        )
        self.servers.configure(settings, lambda: environment)
        self.tools = McpTools(self.servers, settings, lambda: self.registry)

    async def prepare(self) -> list[str]:
        """Begin a turn; returns the names of the tools that it could be offered."""
        await self.servers.prepare()
        return sorted(await self.tools.current())

    async def call(self, name: str, /, **input: JsonValue) -> Settled:
        turn = self.registry.materialize((), listed=await self.tools.current())
        return await turn.settle(name, dict(input), self.context)

    @property
    def context(self) -> ToolCallContext:
        async def require(ask: PermissionAsk) -> None:
            self.asked.append(ask)

        return replace(CONTEXT, require=require, report=self.reports.append)

    def info(self, name: str) -> McpServerInfo:
        return next(info for info in self.tools.describe() if info.name == name)

    async def until(self, name: str, status: str) -> McpServerInfo:
        """Wait until a server has this status."""
        async with asyncio.timeout(20):
            while self.info(name).status != status:
                self.changes.clear()
                await self.changes.wait()
        return self.info(name)

    async def aclose(self) -> None:
        self.servers.close()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        task.result()


@asynccontextmanager
async def mcp_bench(
    directory: Path, lists: MemoryToolLists | None = None
) -> AsyncGenerator[McpBench]:
    bench = McpBench(directory, lists)
    try:
        yield bench
    finally:
        await bench.aclose()
