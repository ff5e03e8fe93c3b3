"""Which Sessions a process runs on its own: all, those of its directory, or none.

What other processes ask of a Session that a command holds is answered all the same.
"""

import asyncio
import subprocess
from pathlib import Path
from typing import Final

import pytest

from perdure.core.session import recovery
from tests.acceptance.processes.test_deadly_runs import ASKS_FIRST
from tests.requirements import requirement
from tests.support import database_check, fork_server
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

SECONDS_MAX: Final = 30
TOLD: Final = ["user", "assistant", "assistant", "user", "assistant"]
"""A command that was cut, the answer to what is known of it, and what waited behind."""
JOB: Final = "while [ ! -e released ]; do sleep 0.05; done"


@pytest.fixture
def elsewhere(folders: ProjectFolders) -> Path:
    """Another directory of the same user, with the same models."""
    directory = folders.project.parent / "elsewhere"
    directory.mkdir()
    (directory / "opencode.json").write_bytes((folders.project / "opencode.json").read_bytes())
    return directory


async def perdure(
    folders: ProjectFolders, directory: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        fork_server.run,
        arguments,
        variables=folders.variables,
        directory=directory,
        input="",
        seconds_max=SECONDS_MAX,
    )


async def leave_in(directory: Path, folders: ProjectFolders, provider: ScriptedProvider) -> str:
    """A Session whose server is killed in a command, with a prompt that waits behind it."""
    provider.then(calls(Call("bash", {"command": "touch begun; sleep 60"})))
    async with server_process(folders, "killed") as server:
        session = await server.api.create(location={"directory": str(directory)})
        async with server.api.events(session) as stream:
            await server.api.prompt(session, "cut here")
            await stream.until("tool.called")
        await server.api.prompt(session, "waits behind", delivery="queue")
        await server.kill()
    return session


@requirement("S70")
async def test_a_run_leaves_the_sessions_of_other_directories_to_a_server(
    folders: ProjectFolders, provider: ScriptedProvider, elsewhere: Path
) -> None:
    session = await leave_in(elsewhere, folders, provider)
    for number in range(2):
        done = await perdure(folders, folders.project, "run", f"mine {number}")
        assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert [provider.requests_with(said) for said in ("cut here", "waits behind")] == [1, 0]
    async with server_process(folders, "next") as server:
        async with server.api.events(session) as stream:
            await stream.until("prompted")
            await stream.until("prompted")
        await server.api.wait(session)
        assert (await server.api.messages(session))[-1]["content"][-1]["text"] == "ok"
    assert provider.requests_with("waits behind") == 1
    await database_check.check(folders.database)


@requirement("S70")
async def test_a_run_resumes_the_sessions_of_its_own_directory(
    folders: ProjectFolders, provider: ScriptedProvider, elsewhere: Path
) -> None:
    session = await leave_in(elsewhere, folders, provider)
    done = await perdure(folders, elsewhere, "run", "mine")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    async with server_process(folders, "next") as server:
        await server.api.wait(session)
        messages = await server.api.messages(session)
    (cut,) = [part for m in messages for part in m.get("content", []) if part["type"] == "tool"]
    assert cut["state"]["error"]["message"] == recovery.OUTCOME_UNKNOWN
    assert [m["text"] for m in messages if m["type"] == "user"] == ["cut here", "waits behind"]
    assert [provider.requests_with(said) for said in ("cut here", "waits behind")] == [2, 1]


async def test_a_server_that_dies_beside_a_run_elsewhere_leaves_its_sessions_to_the_next(
    folders: ProjectFolders, provider: ScriptedProvider, elsewhere: Path, tmp_path: Path
) -> None:
    hold = asyncio.Event()
    provider.then(text("ok", hold=hold))
    with (tmp_path / "errors").open("wb") as errors:
        child, said = fork_server.started(
            ("run", "mine"),
            variables=folders.variables,
            directory=folders.project,
            errors=errors.fileno(),
        )
    with said:
        await provider.arrived(1)
        session = await leave_in(elsewhere, folders, provider)
        # It is there for longer than it takes to notice that the server is gone.
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(child.wait, 1.0)
        assert len(provider.requests) == 2
        hold.set()
        assert await asyncio.to_thread(child.wait, PATIENCE_SECONDS) == 0
    async with server_process(folders, "next") as server:
        async with server.api.events(session) as stream:
            await stream.until("tool.failed")
        await server.api.wait(session)
    assert provider.requests_with("waits behind") == 1


async def test_a_run_does_not_watch_the_jobs_of_other_directories(
    folders: ProjectFolders, provider: ScriptedProvider, elsewhere: Path
) -> None:
    """To watch one is to run its Session when it ends."""
    provider.then(calls(Call("bash", {"command": JOB, "background": True})), text("begun"))
    async with server_process(folders, "killed") as server:
        session = await server.api.create(location={"directory": str(elsewhere)})
        await server.api.ask(session, "begin a job")
        await server.kill()
    (elsewhere / "released").touch()
    done = await perdure(folders, folders.project, "run", "mine")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert len(provider.requests) == 3
    async with server_process(folders, "next") as server, server.api.events(session) as stream:
        await stream.until("synthetic")
        await server.api.wait(session)
    assert len(provider.requests) == 4


async def test_what_a_command_runs_is_stopped_and_answered_through_a_server(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """`perdure recover` resumes nothing on its own, and is no island."""
    folders.configure_user(experimental={"recovery": "ask"}, permissions=[ASKS_FIRST])
    provider.then(text("half", hold=asyncio.Event()))
    async with server_process(folders, "killed") as server:
        session = await server.api.create()
        async with server.api.events(session) as stream:
            await server.api.prompt(session, "go")
            await stream.until("text.started")
        await server.kill()
    provider.then(calls(Call("bash", {"command": "echo ran > effect"})))
    provider.then(text("said in between", hold=asyncio.Event()))
    retried = asyncio.create_task(perdure(folders, folders.project, "recover", session, "--retry"))
    await provider.arrived(2)
    async with server_process(folders, "beside") as server:
        await allow_once(server.api, session)
        await provider.arrived(3)
        assert (folders.project / "effect").read_text() == "ran\n"
        await server.api.post(f"/api/session/{session}/interrupt")
        assert (await retried).returncode == 0
        assert (await server.api.messages(session))[-1]["error"]["message"] == (
            "Provider turn interrupted"
        )


async def allow_once(api: Api, session: str) -> None:
    path = f"/api/session/{session}/permission"
    async with asyncio.timeout(PATIENCE_SECONDS), api.events(session) as stream:
        # The row of the request is written after the call is recorded.
        await stream.until("tool.called")
        while not (found := (await api.get(path))["data"]):
            await api.get("/api/health")
    await api.post(f"{path}/{found[0]['id']}/reply", {"reply": "once"})


async def test_a_process_whose_data_directory_was_away_for_a_while_still_takes_over(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    aside = folders.data.with_name("aside")
    async with server_process(folders, "stays") as stays:
        folders.data.rename(aside)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "looking for changes of other processes failed" not in stays.log:
                await stays.api.call("GET", "/api/health")
        aside.rename(folders.data)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while "looking for changes of other processes works again" not in stays.log:
                await stays.api.call("GET", "/api/health")
        session = await leave_in(folders.project, folders, provider)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(await stays.api.messages(session)) < len(TOLD):
                await stays.api.wait(session)
        assert [message["type"] for message in await stays.api.messages(session)] == TOLD
    await database_check.check(folders.database)
