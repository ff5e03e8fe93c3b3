"""Wrappers of ports with crash points around everything durable or visible that the runtime does.

There is one for each port that matters: the database, the model, a tool, the processes of
background jobs. They change nothing, except that the events of a model arrive one at a time.
Points are named by what was done: a write by the events it appends, else by the tables it changes.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from msgspec.structs import replace

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.llm.event import LLMEvent
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.ports import (
    Database,
    DetachedCommand,
    DetachedProcesses,
    HeldProcess,
    Row,
    SqlValue,
    Transaction,
)
from perdure.tools.api.tool import InputT, OutputT, Tool, ToolCallContext
from tests.harness.crash.points import CrashPoints

T = TypeVar("T")

_CHANGES: Final = re.compile(
    r"\s*(?:INSERT(?: OR \w+)? INTO|REPLACE INTO|UPDATE|DELETE FROM) (\w+)", re.IGNORECASE
)


class CrashingDatabase:
    """Implements ports.Database. Points before, within and after each transaction."""

    def __init__(self, database: Database, points: CrashPoints) -> None:
        self._database = database
        self._points = points

    async def write(
        self,
        job: Callable[[Transaction], Awaitable[T]],
        *,
        committed: Callable[[T], None] | None = None,
    ) -> T:
        points = self._points
        label = ""

        async def watched(tx: Transaction) -> T:
            nonlocal label
            points.reach("write/begin")
            writing = _CrashingTransaction(tx, points)
            result = await job(writing)
            label = writing.label()
            points.reach(f"write/in-transaction[{label}]")
            return result

        def announced(result: T) -> None:
            points.reach(f"write/committed[{label}]")
            if committed is not None:
                committed(result)
            points.reach(f"write/announced[{label}]")

        result = await self._database.write(watched, committed=announced)
        points.reach(f"write/answered[{label}]")
        return result

    async def read(self, job: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self._database.read(job)

    async def empty_log(self) -> bool:
        return await self._database.empty_log()

    async def check_file(self) -> None:
        await self._database.check_file()

    async def changed_elsewhere(self) -> bool:
        return await self._database.changed_elsewhere()


class _CrashingTransaction:
    """Implements ports.Transaction. A point after each statement that changes something."""

    def __init__(self, tx: Transaction, points: CrashPoints) -> None:
        self._tx = tx
        self._points = points
        self._events: list[str] = []
        self._tables: dict[str, None] = {}

    async def execute(self, sql: str, parameters: Mapping[str, SqlValue] | None = None) -> int:
        changed = await self._tx.execute(sql, parameters)
        self._changed(sql, parameters or {})
        return changed

    async def fetch(
        self, sql: str, parameters: Mapping[str, SqlValue] | None = None
    ) -> Sequence[Row]:
        rows = await self._tx.fetch(sql, parameters)
        self._changed(sql, parameters or {})
        return rows

    def label(self) -> str:
        return "+".join(self._events or self._tables)

    def _changed(self, sql: str, parameters: Mapping[str, SqlValue]) -> None:
        table = _changed_by(sql)
        if table is None:
            return
        what = table
        if table == "event" and "type" in parameters:
            what = _short(str(parameters["type"]))
            self._events.append(what)
        self._tables[table] = None
        self._points.reach(f"write/statement[{what}]")


class CrashingModel:
    """Implements llm.model_call.ModelCall. Points when asked, after each event, at the end."""

    def __init__(self, call: ModelCall, points: CrashPoints) -> None:
        self._call = call
        self._points = points

    async def __call__(self, request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        self._points.reach("model/asked")
        stream = self._call(request)
        try:
            async for batch in stream:
                for event in batch:
                    yield (event,)
                    self._points.reach(f"model/delivered[{type(event).__name__}]")
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        self._points.reach("model/ended")


class CrashingDetached:
    """Implements ports.DetachedProcesses. Points after everything that is done to a process."""

    def __init__(self, processes: DetachedProcesses, points: CrashPoints) -> None:
        self._processes = processes
        self._points = points

    async def start(self, command: DetachedCommand) -> "_CrashingHeld":
        held = await self._processes.start(command)
        self._points.reach("job/held")
        return _CrashingHeld(held, self._points)

    def look(self, process: DetachedProcess) -> Sighting:
        return self._processes.look(process)

    def terminate(self, process: DetachedProcess) -> None:
        self._processes.terminate(process)
        self._points.reach("job/terminated")

    async def kill(self, process: DetachedProcess) -> None:
        await self._processes.kill(process)
        self._points.reach("job/killed")

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        await self._processes.clean(process, output_bytes_max=output_bytes_max)
        self._points.reach("job/cleaned")


class _CrashingHeld:
    """Implements ports.HeldProcess."""

    def __init__(self, held: HeldProcess, points: CrashPoints) -> None:
        self._held = held
        self._points = points

    @property
    def process(self) -> DetachedProcess:
        return self._held.process

    def release(self) -> None:
        self._held.release()
        self._points.reach("job/released")

    async def abandon(self) -> None:
        await self._held.abandon()
        self._points.reach("job/abandoned")


def crashing_tool(tool: Tool[InputT, OutputT], points: CrashPoints) -> Tool[InputT, OutputT]:
    """The same tool, with a point before its effect and one after it, before it is recorded."""

    async def execute(input: InputT, context: ToolCallContext) -> OutputT:
        points.reach(f"tool/called[{tool.name}]")
        output = await tool.execute(input, context)
        points.reach(f"tool/done[{tool.name}]")
        return output

    return replace(tool, execute=execute)


@cache
def _changed_by(sql: str) -> str | None:
    """The table that a statement changes. Statements are fixed texts, and few."""
    found = _CHANGES.match(sql)
    return None if found is None else found[1]


def _short(stored: str) -> str:
    """`prompt.admitted` for `session.next.prompt.admitted.1`."""
    return stored.removeprefix("session.next.").rpartition(".")[0]
