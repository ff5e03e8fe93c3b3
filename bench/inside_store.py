"""Measures servers with much data and shared data: `python -m bench inside large handover`.

One real Session is copied in the database until there are 10,000 with a million events, one of them
with 50,000 events. A server on that data is compared with one on an empty database.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.inside import measure
from tests.support.api import Api
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    Call,
    ScriptedProvider,
    calls,
    scripted_provider,
    text,
)
from tests.support.server_process import ServerProcess, start

SESSIONS = 10_000
EVENTS_EACH = 100
LONG_EVENTS = 50_000
PAGES = 200
STARTS = 15
IDLE_SECONDS = 3
KILLS = 10
IMPORTS = 25

_COPY = """
    WITH RECURSIVE copy (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < :copies)
"""
_SESSIONS = """
    INSERT INTO session SELECT replace(s.id, :old, printf(:name, n)), project_id, directory,
        workspace_id, subpath, title, time_created + n, reverting, archived, parent_id,
        CAST(replace(CAST(data AS TEXT), :old, printf(:name, n)) AS BLOB)
    FROM copy, session AS s WHERE s.id = :old
"""
_EVENTS = """
    INSERT INTO event SELECT printf(:name, n), e.seq, e.id || n, e.type, e.location,
        CAST(replace(CAST(e.data AS TEXT), :old, printf(:name, n)) AS BLOB)
    FROM copy, event AS e WHERE e.session_id = :old AND e.seq < :each
"""
_MESSAGES = """
    INSERT INTO session_message SELECT m.id || n, printf(:name, n), m.seq, m.type, m.time_created,
        CAST(replace(CAST(m.data AS TEXT), m.id, m.id || n) AS BLOB)
    FROM copy, session_message AS m WHERE m.session_id = :old AND m.seq < :each
"""
_LONG = """
    INSERT INTO event SELECT e.session_id, (SELECT max(seq) FROM event WHERE session_id = :old) + n,
        e.id || 'x' || n, e.type, e.location, e.data
    FROM copy, event AS e WHERE e.session_id = :old AND e.seq = (
        SELECT max(seq) FROM event WHERE session_id = :old)
"""


@measure
async def large() -> dict[str, object]:
    """10,000 Sessions, 1,000,000 events (budgets: start 1.2x, RSS 1.3x, page 20 ms, resume 150)."""
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            provider.otherwise = lambda request: text("ok " * 20)
            empty, full = places(Path(folder), provider)
            long = await seeded(full)
            await seeded(empty, copies=0)
            small, big = await starts(empty, full)
            server = await start(full, "full")
            pages = await timed(PAGES, lambda: server.api.get("/api/session?limit=50"))
            first = await timed(20, lambda: first_byte(server.api, long))
            await server.stop()
            resting = [await rested(folders) for folders in (empty, full)]
    return {
        "start, times an empty one": f"{big / small:.2f} ({big * 1e3:.0f} ms, {small * 1e3:.0f})",
        "list page p95 ms": round(sorted(pages)[int(PAGES * 0.95)] * 1e3, 1),
        "first byte of 50,000 events ms": round(statistics.median(first) * 1e3, 1),
        "idle RSS, times an empty one": f"{resting[1] / resting[0]:.2f} ({resting[1]:.1f} MiB)",
    }


def places(root: Path, provider: ScriptedProvider) -> tuple[ProjectFolders, ProjectFolders]:
    return make_folders(root / "empty", provider), make_folders(root / "full", provider)


async def seeded(folders: ProjectFolders, *, copies: int = SESSIONS) -> str:
    """A place whose server has run, with `copies` of its Session; the id of a long one."""
    server = await start(folders, "seed")
    session = await server.api.create()
    turns = 0
    while copies and len(await server.api.history(session)) < EVENTS_EACH:
        turns += 1
        await server.api.ask(session, f"question {turns}")
    await server.stop()
    if copies:
        copy(folders.database, session, copies)
    return session


def copy(database: Path, session: str, copies: int) -> None:
    connection = sqlite3.connect(database)
    shape = {"copies": copies, "old": session, "name": "ses_bench%07d", "each": EVENTS_EACH}
    with connection:
        for statement in (_SESSIONS, _EVENTS, _MESSAGES):
            connection.execute(_COPY + statement, shape)
        connection.execute(_COPY + _LONG, {"copies": LONG_EVENTS, "old": session})
    connection.close()


async def starts(*places: ProjectFolders) -> list[float]:
    """Seconds from the start of a process to its first answer about Sessions, in turn at each."""
    took: list[list[float]] = [[] for _ in places]
    for _ in range(STARTS):
        for folders, seen in zip(places, took, strict=True):
            began = time.perf_counter()
            server = await start(folders, "start")
            await server.api.get("/api/session?limit=1")
            seen.append(time.perf_counter() - began)
            await server.stop()
    return [statistics.median(seen) for seen in took]


async def timed(count: int, work: Callable[[], Awaitable[object]]) -> list[float]:
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return took


async def first_byte(api: Api, session: str) -> None:
    async with api.events(session) as stream:
        await stream.frame()


async def rested(folders: ProjectFolders) -> float:
    """MiB of a server that has answered once and then has nothing to do."""
    server = await start(folders, "idle")
    await server.api.get("/api/session?limit=50")
    await asyncio.sleep(IDLE_SECONDS)
    size = resident(server)
    await server.stop()
    return size


def resident(server: ServerProcess) -> float:
    status = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


@measure
async def handover() -> dict[str, object]:
    """Seconds from the kill of a process until another has settled its run (budget: 15)."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            for number in range(KILLS):
                provider.then(calls(Call("bash", {"command": "sleep 60"})))
                took.append(await handed_over(make_folders(Path(folder) / str(number), provider)))
    return {
        "median": round(statistics.median(took), 2),
        "longest": round(max(took), 2),
    }


async def handed_over(folders: ProjectFolders) -> float:
    owner, other = await start(folders, "owner"), await start(folders, "other")
    session = await owner.api.create(agent="terse")
    async with other.api.events(session) as stream:
        await owner.api.prompt(session, "wait")
        await stream.until("tool.called")
        began = time.perf_counter()
        await owner.kill()
        await stream.until("step.failed")
        took = time.perf_counter() - began
    await other.stop()
    return took


@measure
async def client_import() -> dict[str, object]:
    """Import time of the client as a multiple of that of httpx2 alone (budget: 1.3)."""
    ours, theirs = imported("perdure.client"), imported("httpx2")
    return {"factor": f"{ours / theirs:.2f} ({ours * 1e3:.0f} ms against {theirs * 1e3:.0f})"}


def imported(module: str) -> float:
    """Return the least CPU seconds of many interpreters that import the module."""
    took: list[float] = []
    for _ in range(IMPORTS):
        before = os.times()
        subprocess.run((sys.executable, "-c", f"import {module}"), check=True)
        after = os.times()
        took.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(took)
