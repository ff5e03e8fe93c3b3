"""A stopped process blocks no other: its lock is waited for a bounded time, and it is named."""

import asyncio
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from perdure.core import limits
from perdure.schema.codec import JsonObject
from perdure.store.database import sqlite_connection
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text
from tests.support.server_process import server_process

LOOK_SECONDS: Final = 0.1
GRACE_SECONDS: Final = 3.0
"""What an answer may take beyond its bound, on a busy machine."""


@contextmanager
def locked(folders: ProjectFolders) -> Generator[None]:
    """As a process that was stopped within a transaction leaves the database."""
    connection = sqlite_connection.connect(str(folders.database))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


async def silent(api: Api, *, any: bool = True) -> list[str]:
    """The processes that the health report names, once it names some, or none."""
    async with asyncio.timeout(limits.BEATS_MISSED_MAX * limits.BEAT_SECONDS + GRACE_SECONDS):
        while True:
            found: JsonObject = await api.get("/api/health/detail")
            assert found["healthy"]
            if bool(found["silent"]) == any:
                return found["silent"]
            await asyncio.sleep(LOOK_SECONDS)


def check_unavailable(answer: Answer, *words: str) -> None:
    assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
    assert int(answer.headers["retry-after"]) >= 1
    for word in words:
        assert word in answer.json["message"]


@requirement("S147")
async def test_a_run_of_a_stopped_process_is_named_and_goes_on_when_it_does(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("half", hold=hold))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        await a.api.prompt(session, "go")
        await provider.arrived(1)
        name = f"process {a.pid}"
        with a.suspended():
            assert await silent(b.api) == [name]
            for operation in ("interrupt", "wait"):
                began = monotonic()
                answer = await b.api.call("POST", f"/api/session/{session}/{operation}")
                check_unavailable(answer, name, "kill -CONT")
                assert monotonic() - began < GRACE_SECONDS
            # Another Session is not concerned.
            other = await b.api.create()
            assert (await b.api.ask(other, "hello"))[-1]["content"][-1]["text"] == "ok"
            await b.api.prompt(session, "and then")
        hold.set()
        await silent(b.api, any=False)
        await b.api.wait(session)
        # The interrupt was left for it, and the prompt after it was run.
        assert provider.requests_with("and then") == 1
    await database_check.check(folders.database)


@requirement("S147")
async def test_an_idle_session_of_a_stopped_process_is_run_by_another(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        await a.api.ask(session, "first")
        with a.suspended():
            # Both before and after it is known that the process is silent.
            hold = asyncio.Event()
            provider.then(text("ok", hold=hold))
            await b.api.prompt(session, "second")
            waiting = asyncio.create_task(b.api.wait(session))
            await provider.arrived(2)
            assert provider.requests_with("second") == 1
            # Who waited for the stopped process waits for the one that took its place.
            ended, _ = await asyncio.wait([waiting], timeout=4 * limits.ELSEWHERE_LOOK_SECONDS)
            assert not ended
            hold.set()
            await waiting
            await b.api.ask(session, "third")
            assert provider.requests_with("third") == 1
        messages = await a.api.ask(session, "fourth")
        assert messages[-1]["content"][-1]["text"] == "ok"
        assert provider.requests[-1].texts("user") == ["first", "second", "third", "fourth"]
    await database_check.check(folders.database)


async def test_a_stopped_process_that_is_killed_loses_its_run_at_once(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("half", hold=asyncio.Event()))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "go")
            await stream.until("text.started")
            os.kill(a.pid, signal.SIGSTOP)
            await a.kill()
            await stream.until("step.failed")
        await b.api.wait(session)


@requirement("S147")
async def test_writers_wait_a_bounded_time_for_a_lock_that_is_not_given_back(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        session = await server.api.create()
        path = f"/api/session/{session}/prompt"
        body: JsonObject = {"prompt": {"text": "wait"}, "id": "msg_wait"}
        with locked(folders):
            began = monotonic()
            writes = [server.api.call("POST", path, body)]
            writes += [server.api.call("POST", "/api/session", {}) for _ in range(20)]
            answers = asyncio.gather(*writes)
            # Readers do not wait at all.
            assert await server.api.messages(session) == []
            for answer in await answers:
                check_unavailable(answer, str(folders.database))
            assert monotonic() - began < limits.LOCK_WAIT_SECONDS_MAX + GRACE_SECONDS
        answer = await server.api.call("POST", path, body)
        assert answer.status == 200
        await server.api.wait(session)
        assert provider.requests_with("wait") == 1
    assert "Traceback" not in server.log, server.log
    await database_check.check(folders.database)
