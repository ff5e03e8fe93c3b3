"""Child processes behind their port."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import pytest

from perdure.host.process import LocalProcesses, find_ripgrep
from perdure.ports import ProcessResult

Shell = Callable[..., Awaitable[ProcessResult]]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    async def run(
        command: str,
        *,
        seconds: float = 5,
        bytes_max: int = 1_000_000,
        separate_errors: bool = False,
    ) -> ProcessResult:
        async with asyncio.timeout(20):
            return await LocalProcesses().run(
                ("/bin/sh", "-c", command),
                directory=str(tmp_path),
                timeout_seconds=seconds,
                output_bytes_max=bytes_max,
                separate_errors=separate_errors,
            )

    return run


async def dies(pid: int) -> None:
    """Return when the process has ended, reaped or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(5):
            await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_output_and_errors_come_together_with_the_exit_code(shell: Shell) -> None:
    result = await shell("echo out; echo err >&2; exit 3")
    assert result == ProcessResult(
        exit_code=3, output=b"out\nerr\n", truncated=False, timed_out=False
    )


async def test_errors_can_be_left_out(shell: Shell) -> None:
    assert (await shell("echo out; echo err >&2", separate_errors=True)).output == b"out\n"


async def test_there_is_no_input_to_wait_for(shell: Shell) -> None:
    assert (await shell("cat; echo done")).output == b"done\n"


async def test_the_environment_is_exactly_what_was_given(tmp_path: Path) -> None:
    result = await LocalProcesses().run(
        ("/usr/bin/env",),
        directory=str(tmp_path),
        environment={"ONLY": "this"},
        timeout_seconds=5,
        output_bytes_max=1_000,
    )
    assert result.output == b"ONLY=this\n"


async def test_endless_output_is_bounded_and_the_writer_is_not_blocked(shell: Shell) -> None:
    result = await shell("head -c 20000000 /dev/zero; exit 7", bytes_max=1_000)
    assert (len(result.output), result.truncated, result.exit_code) == (1_000, True, 7)


async def test_output_of_exactly_the_bound_is_whole(shell: Shell) -> None:
    result = await shell("printf 12345", bytes_max=5)
    assert (result.output, result.truncated) == (b"12345", False)


async def test_running_out_of_time_ends_the_whole_group(shell: Shell, tmp_path: Path) -> None:
    result = await shell("sleep 60 & echo $! > child; echo began; wait", seconds=0.3)
    assert (result.exit_code, result.timed_out, result.output) == (None, True, b"began\n")
    await dies(int((tmp_path / "child").read_text()))


async def test_a_command_that_ignores_the_request_to_end_is_killed(shell: Shell) -> None:
    started = perf_counter()
    result = await shell("trap '' TERM; echo deaf; while :; do sleep 1; done", seconds=0.2)
    assert result.timed_out
    assert result.output == b"deaf\n"
    assert perf_counter() - started < 8


async def test_a_command_may_clean_up_when_its_time_is_up(shell: Shell) -> None:
    result = await shell("trap 'echo cleaned; exit 0' TERM; echo on; sleep 60 & wait", seconds=0.3)
    assert b"cleaned" in result.output


async def test_a_background_job_is_gone_when_its_command_returns(
    shell: Shell, tmp_path: Path
) -> None:
    started = perf_counter()
    result = await shell("sleep 60 & echo $! > child; echo done")
    assert (result.exit_code, result.output) == (0, b"done\n")
    assert perf_counter() - started < 3
    await dies(int((tmp_path / "child").read_text()))


async def test_a_job_that_left_the_group_cannot_hold_the_caller(
    shell: Shell, tmp_path: Path
) -> None:
    started = perf_counter()
    leave = "setsid sh -c 'echo $$ > child; exec sleep 60' &"
    result = await shell(f"{leave} while [ ! -s child ]; do :; done; echo done")
    assert result.output == b"done\n"
    assert perf_counter() - started < 4
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


async def test_cancelling_ends_the_group_before_it_returns(shell: Shell, tmp_path: Path) -> None:
    # Opening a named pipe to write waits for its reader: the child is known to be running.
    os.mkfifo(tmp_path / "child")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_ignoring_result(shell("sleep 60 & echo $! > child; wait")))
        child = int(await asyncio.to_thread((tmp_path / "child").read_text))
        running.cancel()
    assert running.cancelled()
    await dies(child)


async def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    for arguments, directory, error in (
        (("/no/such/program",), str(tmp_path), FileNotFoundError),
        ((str(tmp_path),), str(tmp_path), PermissionError),
        (("/bin/true",), str(tmp_path / "missing"), FileNotFoundError),
    ):
        with pytest.raises(error):
            await LocalProcesses().run(
                arguments, directory=directory, timeout_seconds=5, output_bytes_max=10
            )


async def test_many_commands_side_by_side_keep_their_output_apart(shell: Shell) -> None:
    results = await asyncio.gather(*(shell(f"echo {number}") for number in range(20)))
    assert [result.output for result in results] == [b"%d\n" % number for number in range(20)]


def test_ripgrep_is_found_or_known_to_be_absent() -> None:
    found = find_ripgrep()
    assert found is None or os.access(found, os.X_OK)


async def _ignoring_result(work: Awaitable[ProcessResult]) -> None:
    await work
