"""Commands that a small process forks: the same as others, and it may die at any time."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.core.sandbox.policy import Place, make_policy
from perdure.host.process import table
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.launches import LAUNCHER, Launches
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.ports import ProcessResult
from tests.skipping import cannot_run
from tests.support import polling
from tests.support.watched_processes import has_process_in

SECONDS = 20


class Started:
    """Runs commands in a workspace, through one small process."""

    def __init__(self, launches: Launches, workspace: Path) -> None:
        self.launches = launches
        self.workspace = workspace
        self.processes = LocalProcesses(None, launches)
        self.sandbox = LocalSandbox(LocalProcesses())

    async def run(
        self,
        command: str,
        *,
        variables: dict[str, str] | None = None,
        seconds: float = SECONDS,
        separate_errors: bool = False,
    ) -> ProcessResult:
        if await self.sandbox.wall() is None:
            cannot_run("This kernel offers no sandbox")
        arguments = await self.sandbox.wrap(
            ("/bin/sh", "-c", command),
            policy=make_policy((Place("write", str(self.workspace)),)),
            directory=str(self.workspace),
        )
        return await self.processes.run(
            arguments,
            directory="/",
            environment={"PATH": os.environ["PATH"], **(variables or {})},
            timeout_seconds=seconds,
            output_bytes_max=20_000_000,
            separate_errors=separate_errors,
        )


@pytest.fixture
async def started(tmp_path: Path) -> AsyncGenerator[Started]:
    launches = Launches()
    yield Started(launches, tmp_path)
    await launches.aclose()


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("echo out; echo err >&2", 0, b"out\nerr\n"),
        ("exit 3", 3, b""),
        ("kill -9 $$", 137, b""),
        ("cat", 0, b""),
        ("pwd > here; cat here | wc -l", 0, b"1\n"),
        ("echo $GIVEN", 0, "wörd \udcff\n".encode(errors="surrogateescape")),
        ("head -c 9000000 /dev/zero | wc -c", 0, b"9000000\n"),
        ("tty || echo none", 0, b"not a tty\nnone\n"),
        ("ls /proc/self/fd | wc -l", 0, b"4\n"),
    ],
)
async def test_a_command_is_like_any_other(
    started: Started, command: str, code: int, output: bytes
) -> None:
    result = await started.run(command, variables={"GIVEN": "wörd \udcff"})
    assert (result.exit_code, result.output) == (code, output)
    assert started.launches.server is not None


async def test_errors_can_be_left_out(started: Started) -> None:
    result = await started.run("echo out; echo err >&2", separate_errors=True)
    assert result.output == b"out\n"


async def test_many_commands_at_once_keep_their_outputs_apart(started: Started) -> None:
    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(started.run(f"echo {number}")) for number in range(30)]
    assert [run.result().output for run in runs] == [b"%d\n" % number for number in range(30)]


async def test_a_large_environment_and_a_long_command_arrive(started: Started) -> None:
    variables = {f"V{number}": "x" * 10_000 for number in range(100)}
    result = await started.run(f"echo {'y' * 100_000} | wc -c; echo ${{#V99}}", variables=variables)
    assert result.output == b"100001\n10000\n"


async def test_a_command_that_takes_too_long_ends_with_all_that_it_started(
    started: Started,
) -> None:
    loop = "while :; do echo x >> alive; sleep 0.02; done"
    command = f"setsid env -i sh -c '{loop}' & {loop}"
    result = await started.run(command, seconds=0.5)
    assert (result.exit_code, result.timed_out) == (None, True)
    await polling.until(lambda: not has_process_in(started.workspace))


async def test_a_cancelled_command_ends(started: Started) -> None:
    run = asyncio.create_task(started.run("touch began; sleep 60"))
    await polling.until((started.workspace / "began").exists)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await polling.until(lambda: not has_process_in(started.workspace))


async def test_what_a_command_leaves_is_told_and_ended(started: Started) -> None:
    result = await started.run("sleep 60 > /dev/null 2>&1 & echo over")
    assert (result.output, result.left_running) == (b"over\n", True)
    await polling.until(lambda: not has_process_in(started.workspace))


async def test_a_small_process_that_died_is_started_again(started: Started) -> None:
    await started.run("true")
    first = started.launches.server
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await polling.until(lambda: not table.read_identity(first))
    assert (await started.run("echo again")).output == b"again\n"
    assert started.launches.server not in {None, first}


async def test_one_that_does_not_answer_is_replaced_and_runs_nothing_twice(tmp_path: Path) -> None:
    launches = Launches(answer_seconds=0.5)
    started = Started(launches, tmp_path)
    await started.run("true")
    stopped = launches.server
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    await started.run("echo x >> count")
    assert (tmp_path / "count").read_text() == "x\n"
    assert launches.server != stopped
    assert not table.read_identity(stopped)
    await launches.aclose()


async def test_a_command_that_is_not_released_does_nothing(started: Started) -> None:
    read_end, write_end = os.pipe()
    wrapped = await started.sandbox.wrap(
        ("/bin/sh", "-c", "echo ran"), policy=make_policy(()), directory="/"
    )
    held = await started.launches.start(wrapped, environment={}, output=write_end, errors=write_end)
    assert held is not None
    os.close(write_end)
    os.close(held.go)
    assert (await asyncio.to_thread(os.waitpid, held.pid, 0))[1] == 0
    assert os.read(read_end, 10) == b""
    os.close(read_end)


async def test_the_small_process_has_little_of_the_environment(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    await started.run("true")
    environment = Path(f"/proc/{started.launches.server}/environ").read_bytes()
    assert b"canary" not in environment
    assert b"HOME=" not in environment


async def test_it_ends_with_the_server_and_is_used_for_launchers_alone(tmp_path: Path) -> None:
    launches = Launches()
    await Started(launches, tmp_path).run("true")
    process = launches.server
    assert process is not None
    assert launches.accepts((*LAUNCHER, "namespaces"))
    assert not launches.accepts(("/bin/sh", "-c", "true"))
    await launches.aclose()
    assert not table.read_identity(process)
    assert not launches.accepts((*LAUNCHER, "namespaces"))
