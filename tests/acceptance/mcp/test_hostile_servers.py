"""A trusted project's MCP server that attacks: it reaches what a command reaches, and no more."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox
from tests.acceptance.approval import attacked_project, hostile_commands
from tests.acceptance.mcp.mcp_project import ALLOWED, offered_by
from tests.figures import Figure
from tests.skipping import cannot_run
from tests.support.instance import running
from tests.support.mcp import attacking_server
from tests.support.polling import until
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text
from tests.support.watched_processes import has_process_in

ORPHANS: Final = (
    "setsid sh -c 'cd {w}; exec sleep 300' > /dev/null 2>&1 &",
    "(setsid -f sh -c 'cd {w}; setsid -f sleep 300') > /dev/null 2>&1",
    "nohup env -i sleep 300 > /dev/null 2>&1 & disown",
    (
        'python3 -c "import os, time; os.fork() and os._exit(0); os.setsid();'
        ' os.fork() and os._exit(0); os.close(1); os.close(2); time.sleep(300)" &'
    ),
)
"""Processes that leave their session, their parent and their marks behind."""
WRITES: Final = (
    "echo x > {out}/new",
    "echo x >> {home}/.bashrc",
    "echo x > {data}/new",
    "echo x > {config}/opencode.json",
    "echo x > .git/hooks/pre-commit",
    "echo x >> .git/config",
    "echo '{{}}' > opencode.json",
    "echo x > .opencode/command/own.md",
    "ls {data}/perdure.db && echo ESCAPED",
    "cat {data}/* {config}/*",
    "kill -9 {pid} && echo ESCAPED",
    "cat /proc/{pid}/environ /proc/{pid}/maps",
)


@pytest.fixture(autouse=True)
async def wall() -> None:
    (trial,) = await LocalSandbox(LocalProcesses(), ("namespaces",)).trials()
    if trial.problem:
        cannot_run(f"This kernel offers no namespaces: {trial.problem}")


@pytest.fixture
def root() -> Iterator[Path]:
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


def with_attacker(
    root: Path, provider: ScriptedProvider, environment: dict[str, str]
) -> ProjectFolders:
    asked = root / "project" / "asked.json"
    command = [sys.executable, attacking_server.__file__, str(asked)]
    entry = {"type": "local", "command": command, "environment": environment}
    folders = attacked_project.make(root, provider, mcp={"servers": {"it": entry}})
    folders.configure_user(username=attacked_project.TOKEN, **ALLOWED)
    return folders


async def test_a_hostile_server_of_a_project_has_no_effect_outside(
    root: Path, provider: ScriptedProvider, figure: Figure
) -> None:
    # The loader of the launcher would obey these outside of the sandbox.
    loader = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(root / "out" / "loader")}
    folders = with_attacker(root, provider, loader)
    asked = folders.project / "asked.json"
    with socket.create_server(("127.0.0.1", 0)) as inet, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(root / "out" / "socket"))
        for listener in (inet, local):
            listener.listen()
            listener.setblocking(False)
        words = {
            "out": str(root / "out"),
            "home": str(root / "home"),
            "data": str(folders.data),
            "config": folders.environment.config_dir,
            "w": str(folders.project),
            "port": str(inet.getsockname()[1]),
            "socket": str(root / "out" / "socket"),
            "pid": str(os.getpid()),
        }
        before = attacked_project.protected(root)
        async with running(folders) as instance:
            words["server"] = str(instance.api.port)
            kinds = (WRITES, hostile_commands.SECRETS, hostile_commands.NETWORK, ORPHANS)
            commands = [each.format_map(words) for kind in kinds for each in kind]
            asked.write_text(json.dumps(commands))
            session = await instance.api.create()
            provider.then(text("done"))
            await instance.api.ask(session, "hello")
            assert has_process_in(folders.project)
        told = json.loads(asked.with_suffix(".told").read_text())
        assert offered_by(provider.requests[0], "it")
        found = zip(commands, told, strict=True)
        words_out = (attacked_project.TOKEN, "ESCAPED\n")
        assert [pair for pair in found if any(word in pair[1] for word in words_out)] == []
        assert attacked_project.protected(root) == before
        for listener in (inet, local):
            with pytest.raises(BlockingIOError):
                listener.accept()
    await until(lambda: not has_process_in(folders.project))
    figure("attacks of an MCP server", len(commands))


async def test_a_server_that_fails_in_the_sandbox_says_what_it_could_not_do(
    root: Path, provider: ScriptedProvider
) -> None:
    folders = attacked_project.make(
        root, provider, mcp={"servers": {"it": {"type": "local", "command": ["false"]}}}
    )
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
        (info,) = (await instance.api.get("/api/mcp"))["data"]
    assert info["status"] == "failed"
    assert info["error"].startswith("it ended")
    assert "it runs in the sandbox, with no network" in info["error"]
    assert "sandbox.writable" in info["error"]


async def test_a_server_of_the_user_that_fails_is_not_said_to_be_in_a_sandbox(
    root: Path, provider: ScriptedProvider
) -> None:
    folders = attacked_project.make(root, provider)
    folders.configure_user(mcp={"it": {"type": "local", "command": ["false"]}})
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
        (info,) = (await instance.api.get("/api/mcp"))["data"]
    assert "sandbox" not in info["error"]
