"""What a killed server was running ends with it: commands, terminals and language servers.

Each command appends to a file for as long as it runs, so a file that grows names a survivor.
"""

import os
import signal
from pathlib import Path
from typing import Final

import pytest

from perdure.host.process import orphans, table
from tests.support import polling
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls
from tests.support.server_process import ServerProcess, server_process

pytestmark = pytest.mark.usefixtures("without_sandbox")

LOOP: Final = "while :; do echo $$ >> alive; sleep 0.05; done"
WRITERS: Final = {
    "in the foreground": LOOP,
    "in the background": f"({LOOP}) & wait",
    "deaf to a request to end": f"trap '' TERM HUP INT; {LOOP}",
    "in a session of its own": f"setsid sh -c '{LOOP}' & wait",
    "in a session of its own, without its parent": (
        f"(setsid sh -c '{LOOP}' > /dev/null 2>&1 &); sleep 60"
    ),
    "with another environment": f"env -i PATH=$PATH setsid sh -c '{LOOP}' & wait",
    "with another environment, deaf": (
        f"env -i PATH=$PATH setsid sh -c 'trap : TERM HUP; {LOOP}' & wait"
    ),
    "in place of its shell": f"exec env -i PATH=$PATH sh -c '{LOOP}'",
    "stopped": f"sh -c 'echo $$ >> alive; kill -s STOP $$; {LOOP}'",
}


def running(folders: ProjectFolders) -> set[int]:
    """The processes that wrote to the file and still run."""
    try:
        written = (folders.project / "alive").read_text().split()
    except FileNotFoundError:
        return set()
    return {int(pid) for pid in written if table.read_identity(int(pid))}


def watchers(folders: ProjectFolders) -> list[int]:
    """The processes that wait for the death of a server on this data directory."""
    found: list[int] = []
    for row in table.list_rows():
        try:
            command = Path(f"/proc/{row.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"perdure-watcher" in command and os.fsencode(folders.data) in command:
            found.append(row.pid)
    return found


async def started(server: ServerProcess, folders: ProjectFolders) -> str:
    """A Session whose command has written."""
    session = await server.api.create()
    await server.api.prompt(session, "run")
    await polling.until(lambda: running(folders) and is_recorded(folders))
    return session


def is_recorded(folders: ProjectFolders) -> bool:
    """Whether the server knows that the command has started: not before its next turn."""
    try:
        return all(path.read_text() for path in (folders.data / "processes").glob("*.child"))
    except FileNotFoundError:
        # Another child, such as git, has ended meanwhile.
        return False


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS.keys())
async def test_a_command_ends_when_its_server_is_killed(
    folders: ProjectFolders, provider: ScriptedProvider, command: str
) -> None:
    provider.then(calls(Call("bash", {"command": command})))
    async with server_process(folders) as server:
        await started(server, folders)
        await server.kill()
    await polling.until(lambda: not running(folders))
    await polling.until(lambda: not orphans.list_processes(str(folders.data / "processes")))


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS.keys())
async def test_a_command_ends_before_the_next_server_settles_its_call(
    folders: ProjectFolders, provider: ScriptedProvider, command: str
) -> None:
    provider.then(calls(Call("bash", {"command": command})))
    async with server_process(folders) as server:
        session = await started(server, folders)
        # Stopped first, so that none of the two acts on the death of the other.
        for watcher in watchers(folders):
            os.kill(watcher, signal.SIGKILL)
        await server.kill()
    assert running(folders)
    async with server_process(folders, "next") as server:
        async with server.api.events(session) as stream:
            await stream.until("tool.failed")
        assert not running(folders)
        await server.api.wait(session)


async def test_what_an_ended_command_left_on_purpose_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    left = f"setsid sh -c '{LOOP}' > /dev/null 2>&1 < /dev/null & sleep 0.2"
    provider.then(calls(Call("bash", {"command": left})))
    async with server_process(folders) as server:
        session = await started(server, folders)
        await server.api.wait(session)
        await server.kill()
    async with server_process(folders, "next") as server:
        await server.api.ask(session, "hello")
    try:
        assert running(folders)
    finally:
        for pid in running(folders):
            os.kill(pid, signal.SIGKILL)
