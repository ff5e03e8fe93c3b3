"""Child processes behind their port."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import pytest

from perdure.core.limits import PROCESS_WAITING_BYTES_MAX
from perdure.host.process import table
from perdure.host.process.runner import LocalProcesses, find_ripgrep
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
    assert result.left_running
    await dies(int((tmp_path / "child").read_text()))


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


def _install_ripgrep(folder: Path) -> str:
    folder.mkdir()
    program = folder / "rg"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


def test_the_ripgrep_of_the_machine_comes_before_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_the_machine = _install_ripgrep(tmp_path / "system")
    installed = _install_ripgrep(tmp_path / "environment")
    monkeypatch.setattr("sys.executable", str(tmp_path / "environment" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "system"))
    assert find_ripgrep() == of_the_machine
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert find_ripgrep() == installed
    monkeypatch.setattr("sys.executable", str(tmp_path / "elsewhere" / "python"))
    assert find_ripgrep() is None


async def _ignoring_result(work: Awaitable[ProcessResult]) -> None:
    await work


class Sink:
    """Takes output, slowly or until it is full."""

    def __init__(self, *, full_at: int | None = None) -> None:
        self.taken = bytearray()
        self.largest = 0
        self._full_at = full_at

    async def write(self, data: bytes) -> None:
        await asyncio.sleep(0)
        self.largest = max(self.largest, len(data))
        self.taken += data
        if self._full_at is not None and len(self.taken) >= self._full_at:
            raise BufferError("full")


async def run_into(sink: Sink, command: str, tmp_path: Path, seconds: float = 20) -> ProcessResult:
    async with asyncio.timeout(20):
        return await LocalProcesses().run_into(
            sink, ("/bin/sh", "-c", command), directory=str(tmp_path), timeout_seconds=seconds
        )


async def test_a_sink_gets_everything_in_order_and_in_bounded_pieces(tmp_path: Path) -> None:
    sink = Sink()
    result = await run_into(sink, "seq 1 1000000; echo err >&2; exit 4", tmp_path)
    assert (result.exit_code, result.output, result.left_running) == (4, b"", False)
    numbers = b"".join(b"%d\n" % number for number in range(1, 1_000_001))
    assert sink.taken == numbers + b"err\n"
    assert sink.largest <= 2 * PROCESS_WAITING_BYTES_MAX


async def test_a_sink_that_fails_ends_the_command_and_is_heard_of(tmp_path: Path) -> None:
    started = perf_counter()
    with pytest.raises(BufferError):
        await run_into(Sink(full_at=1), "echo $$ > leader; yes", tmp_path)
    assert perf_counter() - started < 2
    await dies(int((tmp_path / "leader").read_text()))


async def test_cancelling_gives_the_sink_what_was_printed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "on")
    sink = Sink()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            _ignoring_result(run_into(sink, "echo said; echo > on; sleep 60", tmp_path))
        )
        await asyncio.to_thread((tmp_path / "on").read_text)
        running.cancel()
    assert running.cancelled()
    assert sink.taken == b"said\n"


async def test_what_was_left_running_is_known(shell: Shell) -> None:
    assert (await shell("sleep 60 & echo on")).left_running
    assert (await shell("sleep 60 > /dev/null 2>&1 & echo on")).left_running
    assert not (await shell("(echo late; echo later) & echo on")).left_running
    assert not (await shell("sleep 60", seconds=0.1)).left_running


async def test_a_job_in_the_background_may_finish_its_sentence(shell: Shell) -> None:
    assert (await shell("(sleep 0.1; echo late) & echo on")).output == b"on\nlate\n"


def test_only_living_members_of_a_group_count() -> None:
    assert table.has_members(os.getpgid(0))
    assert not table.has_members(2**22 - 1)


def test_who_writes_to_a_pipe_is_found_and_its_reader_is_not() -> None:
    reading, writing = os.pipe()
    inode = os.fstat(reading).st_ino
    with (
        open(reading, "rb") as reader,
        open(writing, "wb") as writer,
        subprocess.Popen(["sleep", "60"], stdout=writer) as holder,
        subprocess.Popen(["sleep", "60"], stdin=reader) as listener,
    ):
        try:
            assert table.list_pipe_writers(inode) == (holder.pid,)
        finally:
            holder.kill()
            listener.kill()
