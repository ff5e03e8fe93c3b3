"""A hostile model on a real server: no command reaches outside, a secret, or what git obeys."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox
from tests.acceptance.approval import attacked_project
from tests.acceptance.approval.attacked_project import TOKEN, protected
from tests.acceptance.approval.hostile_commands import list_commands
from tests.figures import Figure
from tests.skipping import cannot_run
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

COMMANDS_MIN: Final = 150
TOGETHER: Final = 8


@pytest.fixture(autouse=True)
async def wall() -> None:
    (trial,) = await LocalSandbox(LocalProcesses(), ("namespaces",)).trials()
    if trial.problem:
        cannot_run(f"This kernel offers no namespaces: {trial.problem}")


@pytest.fixture
def root() -> Iterator[Path]:
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture
def folders(root: Path, provider: ScriptedProvider) -> ProjectFolders:
    return attacked_project.make(root, provider)


async def test_no_command_of_a_model_has_an_effect_outside(
    root: Path, folders: ProjectFolders, provider: ScriptedProvider, figure: Figure
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as inet, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(root / "out" / "socket"))
        for listener in (inet, local):
            listener.listen()
            listener.setblocking(False)
        before = protected(root)
        async with running(folders) as server:
            words = {
                "out": str(root / "out"),
                "home": str(root / "home"),
                "data": str(folders.data),
                "config": folders.environment.config_dir,
                "w": str(folders.project),
                "port": str(inet.getsockname()[1]),
                "socket": str(root / "out" / "socket"),
                "server": str(server.api.port),
                "pid": str(os.getpid()),
            }
            commands = [command.format_map(words) for command in list_commands()]
            assert len(commands) >= COMMANDS_MIN
            escaped: list[str] = []
            session = await server.api.create(agent="build")
            for at in range(0, len(commands), TOGETHER):
                batch = commands[at : at + TOGETHER]
                provider.then(calls(*(bash(command) for command in batch)), text("done"))
                await server.api.ask(session, "go on")
                for command, told in zip(
                    batch, provider.requests[-1].texts("tool")[-len(batch) :], strict=True
                ):
                    if TOKEN in told or "ESCAPED\n" in told:
                        escaped.append(f"{command}\n{told[:400]}")
                if protected(root) != before:
                    escaped.append(f"one of these changed a file: {batch}")
                    break
        assert escaped == [], "\n".join(escaped)
        for listener in (inet, local):
            with pytest.raises(BlockingIOError):
                listener.accept()
    figure("hostile commands through a server", len(commands))


def bash(command: str) -> Call:
    return Call("bash", {"command": command, "timeout": 3_000})
