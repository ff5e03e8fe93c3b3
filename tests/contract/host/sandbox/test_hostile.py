"""What hostile commands reach from inside the sandbox: nothing."""

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from perdure.core.sandbox.policy import Place, SandboxPolicy, make_policy
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import Launches, program
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.ports.sandbox import Wall
from tests.contract.host.sandbox import hostile_calls, hostile_commands
from tests.figures import Figure
from tests.skipping import cannot_run
from tests.support import polling
from tests.support.watched_processes import has_process_in

TOKEN: Final = "canary-token-7351"
COMMANDS_MIN: Final = 400
CALLS_MIN: Final = 150
SECONDS: Final = 20
NOBODY: Final = 65_534
TOGETHER: Final = 4
BEYOND_LANDLOCK: Final = ("/.git/", "w/opencode.json", "chmod", "chown", "touch -d", "setxattr")
"""What Landlock has no rights for: places inside the workspace, and modes, owners and times."""

SEEN_BY_LANDLOCK: Final = ("syscall(434, {pid}", "ls /proc/{pid}")
"""Without a namespace of processes, others can be seen. They cannot be touched."""


@dataclass(kw_only=True)
class World:
    """A workspace in a sandbox, and things outside that must stay as they are."""

    root: Path
    words: dict[str, str]
    policy: SandboxPolicy
    listeners: list[socket.socket]
    victim: asyncio.subprocess.Process
    launches: Launches

    def outside(self) -> dict[str, tuple[int, bytes]]:
        """Every file outside, and what commands may not change inside: mode and content."""
        roots = ("out", "home", "data", "config", "w/.git/hooks", "w/.git/config")
        found: dict[str, tuple[int, bytes]] = {}
        for root in (*roots, "w/opencode.json"):
            base = self.root / root
            for path in (base, *sorted(base.rglob("*"))):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (status.st_mode, content)
        return found

    def without_workspace(
        self, found: dict[str, tuple[int, bytes]]
    ) -> dict[str, tuple[int, bytes]]:
        """What Landlock has rights for: no places inside the workspace, and no modes."""
        outside = (path for path in found if f"{self.root}/w/" not in path)
        return {path: (0, found[path][1]) for path in outside}

    def connections(self) -> int:
        count = 0
        for listener in self.listeners:
            try:
                made, _ = listener.accept()
            except BlockingIOError:
                continue
            made.close()
            count += 1
        return count


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory on an ordinary file system: commands have a /dev/shm of their own."""
    with TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


@pytest.fixture(params=["this user", "an ordinary user"])
def user(request: pytest.FixtureRequest) -> int | None:
    """Who runs the commands; None for the user of the test."""
    if request.param == "this user":
        return None
    if os.getuid() != 0:
        # This user is an ordinary one.
        return None
    return NOBODY


@pytest.fixture
async def world(folder: Path, user: int | None) -> AsyncGenerator[World]:
    for name in ("w/.git/hooks", "out", "home/.ssh", "data", "config"):
        (folder / name).mkdir(parents=True)
    for name in (
        *(
            "out/kept",
            "home/.bashrc",
            "w/.git/config",
            "w/opencode.json",
            "w/.git/hooks/pre-commit",
        ),
    ):
        (folder / name).write_text("kept as it is\n")
    for name in ("data/perdure.db", "config/opencode.json", "home/.ssh/id_ed25519"):
        (folder / name).write_text(f"{TOKEN}\n")
    local = socket.socket(socket.AF_UNIX)
    local.bind(str(folder / "out" / "s"))
    inet = socket.create_server(("127.0.0.1", 0))
    for listener in (local, inet):
        listener.listen()
        listener.setblocking(False)
    victim = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", "read line; : canary-process"),
        stdin=subprocess.PIPE,
        env={"SECRET": TOKEN},
        start_new_session=True,
        user=user,
    )
    words = {
        "w": f"{folder}/w",
        "out": f"{folder}/out",
        "home": f"{folder}/home",
        "data": f"{folder}/data",
        "config": f"{folder}/config",
        "secret": f"{folder}/data/perdure.db",
        "pid": str(victim.pid),
        "port": str(inet.getsockname()[1]),
        "socket": f"{folder}/out/s",
    }
    places = (
        Place("write", words["w"]),
        Place("keep", f"{folder}/w/.git"),
        Place("read", f"{folder}/w/.git/hooks"),
        Place("read", f"{folder}/w/.git/config"),
        Place("read", f"{folder}/w/opencode.json"),
        *(Place("hide", f"{folder}/{name}") for name in ("data", "config", "home/.ssh")),
    )
    launches = Launches() if user is None else Launches(server=as_user(user))
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
    try:
        yield World(
            root=folder,
            words=words,
            policy=make_policy(places),
            listeners=[local, inet],
            victim=victim,
            launches=launches,
        )
    finally:
        await launches.aclose()
        victim.kill()
        await victim.communicate()
        for listener in (local, inet):
            listener.close()


def as_user(user: int) -> tuple[str, ...]:
    """A launch server that becomes another user, who need not be able to start Python."""
    become = f"import os; os.setgroups([]); os.setgid({user}); os.setuid({user})"
    # As after an exec: its files in /proc belong to the user.
    visible = "launch_server.kernel.prctl(4, 1)"
    return program("launch_server", f"{become}; {visible}")


async def open_sandbox(world: World, wall: Wall) -> LocalSandbox:
    sandbox = LocalSandbox(LocalProcesses(None, world.launches), (wall,))
    (trial,) = await sandbox.trials()
    if trial.problem:
        cannot_run(f"This kernel does not offer {wall}: {trial.problem}")
    return sandbox


async def run(world: World, sandbox: LocalSandbox, command: str) -> str:
    """The output of a command in a workspace that has the files it uses."""
    inside = Path(world.words["w"])
    owner = inside.stat()
    with (inside / "mine").open("w") as mine:
        mine.write("mine")
        # By its descriptor: another command may remove the file meanwhile.
        os.fchown(mine.fileno(), owner.st_uid, owner.st_gid)
    result = await LocalProcesses(None, world.launches).run(
        await sandbox.wrap(
            ("/bin/bash", "-c", command), policy=world.policy, directory=str(inside)
        ),
        directory=str(inside),
        environment={"PATH": os.environ["PATH"], "HOME": world.words["home"]},
        timeout_seconds=SECONDS,
        output_bytes_max=1_000_000,
    )
    return result.output.decode(errors="replace")


async def attempt_all(world: World, sandbox: LocalSandbox, commands: Iterable[str]) -> list[str]:
    """Run commands, some at a time; the commands with their output that got out."""
    room = asyncio.Semaphore(TOGETHER)
    escaped: list[str] = []

    async def attempt(command: str) -> None:
        async with room:
            output = await run(world, sandbox, command)
        if TOKEN in output or "ESCAPED" in output:
            escaped.append(f"{command}\n{output[:500]}")

    async with asyncio.TaskGroup() as group:
        for command in commands:
            group.create_task(attempt(command))
    return escaped


@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_no_system_call_device_or_socket_leads_outside(
    world: World, wall: Wall, figure: Figure
) -> None:
    sandbox = await open_sandbox(world, wall)
    written = hostile_calls.list_commands()
    if wall == "landlock":
        written = [each for each in written if not any(name in each for name in SEEN_BY_LANDLOCK)]
    commands = [command.format_map(world.words) for command in written]
    assert len(commands) >= CALLS_MIN
    before = world.outside()
    assert await attempt_all(world, sandbox, commands) == []
    after = world.outside()
    if wall == "landlock":
        before, after = world.without_workspace(before), world.without_workspace(after)
    assert after == before
    assert world.connections() == 0
    assert world.victim.returncode is None
    figure("hostile calls, devices and sockets", len(commands))


@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_no_hostile_command_has_an_effect_outside(
    world: World, wall: Wall, figure: Figure
) -> None:
    sandbox = await open_sandbox(world, wall)
    commands = [command.format_map(world.words) for command in hostile_commands.list_commands()]
    if wall == "landlock":
        commands = [each for each in commands if not any(name in each for name in BEYOND_LANDLOCK)]
    else:
        assert len(commands) >= COMMANDS_MIN
    before = world.outside()
    escaped = await attempt_all(world, sandbox, commands)
    after = world.outside()
    if wall == "landlock":
        before, after = world.without_workspace(before), world.without_workspace(after)
    assert escaped == []
    assert after == before
    assert world.connections() == 0
    assert world.victim.returncode is None
    figure("hostile commands", len(commands))


@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_ordinary_work_goes_on_inside(world: World, wall: Wall, user: int | None) -> None:
    sandbox = await open_sandbox(world, wall)
    # The pipe is the test's, and another user may write to it but not open it.
    to_errors = "tee /dev/stderr" if user is None else "(cat >&2)"
    output = await run(
        world,
        sandbox,
        "echo text > new && cat new && mkdir -p a/b && mv new a/b && rm -r a"
        " && python3 -c 'print(6*7)'"
        f" && cat <(echo substituted) && echo x > /dev/null && echo x | {to_errors} > /dev/null"
        " && head -c 4 /dev/urandom | wc -c && cat {out}/kept".format_map(world.words),
    )
    assert output == "text\n42\nsubstituted\nx\n4\nkept as it is\n"


async def test_a_server_can_be_tested_inside_without_a_network(world: World) -> None:
    sandbox = await open_sandbox(world, "namespaces")
    script = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "made = socket.create_connection(server.getsockname())\n"
        "server.accept()[0].send(b'hello'); print(made.recv(5))"
    )
    assert await run(world, sandbox, f'python3 -c "{script}"') == "b'hello'\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 3", 3), ("kill -9 $$", 137), ("nosuchcommand", 127), ("true", 0)],
)
@pytest.mark.parametrize("wall", ["namespaces", "landlock"])
async def test_the_exit_code_is_that_of_the_command(
    world: World, wall: Wall, command: str, code: int
) -> None:
    sandbox = await open_sandbox(world, wall)
    arguments = await sandbox.wrap(
        ("/bin/sh", "-c", command), policy=world.policy, directory=world.words["w"]
    )
    result = await LocalProcesses(None, world.launches).run(
        arguments, directory="/", timeout_seconds=SECONDS, output_bytes_max=1_000
    )
    assert (result.exit_code or 0) % 256 in {code, 256 - 9 if code == 137 else code}


async def test_everything_that_a_command_started_ends_with_its_group(world: World) -> None:
    sandbox = await open_sandbox(world, "namespaces")
    loop = "while :; do echo x >> alive; sleep 0.02; done"
    await run(world, sandbox, f"setsid env -i sh -c '{loop}' > /dev/null 2>&1 & sleep 0.3")
    alive = Path(world.words["w"], "alive")
    assert alive.stat().st_size > 0
    await polling.until(lambda: not has_process_in(Path(world.words["w"])))
