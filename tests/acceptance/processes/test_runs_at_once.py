"""Many `perdure run` on one data directory, and runs that one process starts and another makes.

Each prompt is answered, each process ends, and each process can tell what the others run.
"""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.figures import Figure
from tests.requirements import requirement
from tests.support import database_check, fork_server
from tests.support.api import PATIENCE_SECONDS, Stream
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text
from tests.support.server_process import server_process

AT_ONCE: Final = 16
STAYS_SECONDS: Final = 1.0
ROUNDS: Final = int(os.environ.get("PERDURE_ROUNDS", "1"))
SECONDS_MAX: Final = 60
"""For processes that all start at once on a busy machine."""


async def run(folders: ProjectFolders, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        fork_server.run,
        ("run", *arguments),
        variables=folders.variables,
        directory=folders.project,
        input="",
        seconds_max=SECONDS_MAX,
    )


def check_answers(results: Sequence[subprocess.CompletedProcess[str]]) -> None:
    for result in results:
        assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr


@requirement("S70", "S147")
@pytest.mark.timeout(60 + SECONDS_MAX * ROUNDS)
async def test_sixteen_runs_at_once_are_all_answered_and_all_end(
    folders: ProjectFolders, provider: ScriptedProvider, figure: Figure
) -> None:
    for number in range(ROUNDS):
        prompts = [f"prompt {number}.{one}." for one in range(AT_ONCE)]
        check_answers(await asyncio.gather(*(run(folders, prompt) for prompt in prompts)))
        assert [provider.requests_with(prompt) for prompt in prompts] == [1] * AT_ONCE
    await database_check.check(folders.database)
    figure("runs at once", AT_ONCE)
    figure("runs of the command line", AT_ONCE * ROUNDS)


async def test_a_run_in_a_session_of_a_server_sees_the_end_and_the_answer(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.ask(session, "first")
        results = [await run(folders, "--session", session, f"after {n}") for n in range(3)]
        check_answers(results)
        await server.api.wait(session)
    assert len(provider.requests) == 4


async def test_each_process_tells_what_another_one_runs(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("slow", hold=hold))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        async with b.api.stream("/api/event") as live:
            await a.api.prompt(session, "go")
            assert await status(live, session) == "busy"
            active: JsonObject = (await b.api.get("/api/session/active"))["data"]
            assert active == {session: {"type": "running"}}
            hold.set()
            assert await status(live, session) == "idle"
        assert (await b.api.get("/api/session/active"))["data"] == {}


async def status(live: Stream, session: str) -> str:
    event = (await live.until("session.status", sessionID=session))[-1]
    return event["data"]["status"]["type"]


@requirement("S70")
async def test_a_run_that_took_over_the_work_of_a_dead_process_finishes_it_before_it_leaves(
    folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    async with server_process(folders) as server:
        session = await server.api.create()
        provider.then(text("never said", hold=asyncio.Event()))
        await server.api.prompt(session, "first")
        await provider.arrived(1)
        await server.api.prompt(session, "left behind", delivery="queue")
        await server.kill()
    hold = asyncio.Event()
    provider.otherwise = lambda request: (
        text("kept", hold=hold) if "left behind" in request.texts("user") else text("ok")
    )
    with (tmp_path / "errors").open("wb") as errors:
        child, said = fork_server.started(
            ("run", "mine"),
            variables=folders.variables,
            directory=folders.project,
            errors=errors.fileno(),
        )
    with said:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await asyncio.to_thread(said.readline) == "ok\n"
            while not provider.requests_with("left behind"):
                await provider.arrived(len(provider.requests) + 1)
        # Its own prompt is answered, and it stays for the other.
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(child.wait, STAYS_SECONDS)
        hold.set()
        assert await asyncio.to_thread(child.wait, PATIENCE_SECONDS) == 0
    async with server_process(folders, "next") as server:
        said_last = (await server.api.messages(session))[-1]
        assert said_last["content"][-1]["text"] == "kept"
        assert provider.requests_with("left behind") == 1
