"""Commands that outlive us: how they begin, how they are found again, and how they are ended."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.host.process import table
from perdure.host.process.detached import LocalDetached
from perdure.ports import DetachedCommand, HeldProcess
from tests.support.polling import until


class Machine:
    """Starts commands in one directory, and leaves none of them behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = LocalDetached()
        self.started: list[DetachedProcess] = []

    async def hold(self, command: str, *, directory: Path | None = None) -> HeldProcess:
        held = await self.host.start(
            DetachedCommand(
                shell="/bin/sh",
                command=command,
                directory=str(directory or self.folder),
                environment={"PATH": os.environ["PATH"], "MARK": "set"},
                output=str(self.folder / f"out{len(self.started)}"),
            )
        )
        self.started.append(held.process)
        return held

    async def start(self, command: str) -> DetachedProcess:
        held = await self.hold(command)
        held.release()
        return held.process

    async def ended(self, process: DetachedProcess) -> Sighting:
        await until(lambda: not self.host.look(process).alive)
        return self.host.look(process)

    async def said(self, process: DetachedProcess, words: str) -> str:
        """All that it printed, once these words are among it."""
        path = Path(process.output)
        await until(lambda: words in path.read_text())
        return path.read_text()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncGenerator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    for process in machine.started:
        await machine.host.kill(process)
        await machine.ended(process)


async def test_a_command_prints_to_its_file_and_keeps_its_exit_code(machine: Machine) -> None:
    process = await machine.start('echo out; echo err >&2; echo "$MARK" "$PWD"; cat; exit 7')
    seen = await machine.ended(process)
    said = f"out\nerr\nset {machine.folder}\n"
    assert Path(process.output).read_text() == said
    assert seen == Sighting(alive=False, exit_code=7, output_bytes=len(said))
    assert os.stat(process.output).st_mode & 0o777 == 0o600
    # A process that never was its parent reads the same.
    assert LocalDetached().look(process) == seen


async def test_nothing_happens_before_it_is_released(machine: Machine) -> None:
    held = await machine.hold("echo ran >made")
    assert machine.host.look(held.process).alive
    await held.abandon()
    assert not machine.host.look(held.process).alive
    assert sorted(path.name for path in machine.folder.iterdir()) == []


async def test_a_command_whose_starter_dies_before_the_release_never_runs(
    machine: Machine,
) -> None:
    program = f"""
import asyncio, os, signal
from perdure.host.process.detached import LocalDetached
from perdure.ports import DetachedCommand
command = DetachedCommand(shell="/bin/sh", command="echo ran >made", environment=None,
    directory={str(machine.folder)!r}, output={str(machine.folder / "out")!r})
held = asyncio.run(LocalDetached().start(command))
print(held.process.pid, held.process.identity, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await child.communicate()
    pid, identity = said.decode().split()
    process = DetachedProcess(pid=int(pid), identity=identity, output=str(machine.folder / "out"))
    seen = await machine.ended(process)
    assert seen.exit_code is None
    assert not (machine.folder / "made").exists()


@pytest.mark.parametrize(
    ("command", "code"),
    [("kill -9 $$", 137), ("kill -TERM 0; sleep 60", 143), ("kill -9 0", 137), ("false", 1)],
)
async def test_however_it_ends_its_parent_learns_the_code(
    machine: Machine, command: str, code: int
) -> None:
    assert (await machine.ended(await machine.start(command))).exit_code == code


async def test_another_process_of_the_same_number_is_not_taken_for_it(machine: Machine) -> None:
    process = await machine.start("echo up; sleep 60")
    await machine.said(process, "up")
    stranger = LocalDetached()
    assert stranger.look(process).alive
    for other in ("", process.identity + "0", "boot:1"):
        reused = replace(process, identity=other, output=str(machine.folder / "none"))
        assert not stranger.look(reused).alive
        stranger.terminate(reused)
        await stranger.kill(reused)
    assert stranger.look(process).alive


async def test_all_that_a_command_left_running_is_ended_with_it(machine: Machine) -> None:
    process = await machine.start("sleep 60 & echo $!; exit 0")
    seen = await machine.ended(process)
    left = int((await machine.said(process, "\n")).strip())
    assert seen.exit_code == 0
    await until(lambda: not table.read_identity(left))


async def test_a_command_that_will_not_end_is_killed_with_its_daemons(machine: Machine) -> None:
    daemon = "trap '' TERM; echo daemon $$; while :; do sleep 1; done"
    process = await machine.start(
        f'setsid sh -c "{daemon.replace("$", chr(92) + "$")}" & '
        "trap '' TERM; echo deaf; while :; do sleep 1; done"
    )
    said = await machine.said(process, "daemon")
    await machine.said(process, "deaf")
    daemons = [int(line.split()[1]) for line in said.splitlines() if line.startswith("daemon")]
    assert all(map(table.read_identity, daemons))
    machine.host.terminate(process)
    assert machine.host.look(process).alive
    await machine.host.kill(process)
    await machine.ended(process)
    await until(lambda: not any(map(table.read_identity, daemons)))


async def test_a_command_that_obeys_says_how_it_ended(machine: Machine) -> None:
    process = await machine.start("trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait")
    await machine.said(process, "up")
    LocalDetached().terminate(process)
    seen = await machine.ended(process)
    assert seen.exit_code == 3
    assert Path(process.output).read_text() == "up\nbye\n"


async def test_a_directory_that_is_gone_is_an_exit_code_and_words(machine: Machine) -> None:
    held = await machine.hold("echo never", directory=machine.folder / "gone")
    held.release()
    seen = await machine.ended(held.process)
    assert seen.exit_code not in {0, None}
    assert "gone" in Path(held.process.output).read_text()
    assert "never" not in Path(held.process.output).read_text()


async def test_an_output_file_that_is_there_already_is_not_touched(machine: Machine) -> None:
    (machine.folder / "out0").write_text("precious")
    with pytest.raises(FileExistsError):
        await machine.hold("echo new")
    assert (machine.folder / "out0").read_text() == "precious"


async def test_what_is_over_can_be_cleaned_up(machine: Machine) -> None:
    process = await machine.start("printf 0123456789")
    await machine.ended(process)
    await machine.host.clean(process, output_bytes_max=4)
    assert [path.name for path in machine.folder.iterdir()] == ["out0"]
    assert Path(process.output).read_text() == "0123"
    await machine.host.clean(process, output_bytes_max=4)


async def test_a_damaged_exit_code_is_no_exit_code(machine: Machine) -> None:
    process = await machine.start("exit 0")
    await machine.ended(process)
    for damage in (b"", b"zero", b"\xff\xfe"):
        Path(process.output + ".exit").write_bytes(damage)
        assert LocalDetached().look(process).exit_code is None


async def test_our_own_locks_and_files_are_not_inherited(machine: Machine) -> None:
    with (machine.folder / "lock").open("w"), (machine.folder / "handed").open("w") as handed:
        # As one that our own parent left open for us.
        os.set_inheritable(handed.fileno(), True)
        process = await machine.start("ls -l /proc/self/fd; echo over")
        said = await machine.said(process, "over")
    assert str(machine.folder / "lock") not in said
    assert str(machine.folder / "handed") not in said
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN
