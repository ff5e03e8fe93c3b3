"""Commands that misbehave: each comes back in time, leaves nothing running, costs little memory.

What can escape: a process that left the group and its session, and gave up our output as well. It
makes no caller wait; without control groups nothing on this machine still connects it to us.
"""

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import pytest

from perdure.core.limits import (
    BASH_OUTPUT_BYTES_MAX,
    PROCESS_TERMINATE_SECONDS,
    TOOL_OUTPUT_FILE_BYTES_MAX,
)
from perdure.host.process import table
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.figures import Figure
from tests.requirements import requirement
from tests.skipping import cannot_run

TIMEOUT_SECONDS: Final = 2.0
SLACK_SECONDS: Final = 2.0
GROWTH_BYTES_MAX: Final = 16 * 1024 * 1024
FLOOD_BYTES: Final = int(
    os.environ.get("PERDURE_FLOOD_BYTES", TOOL_OUTPUT_FILE_BYTES_MAX + 10_000_000)
)
"""Of the largest output; 1 GiB takes the same path and ten times as long."""


@dataclass(frozen=True)
class Case:
    name: str
    command: str
    says: str
    exit: int | None = 0
    grace: float = 0


CASES: Final = (
    Case("a child holds the pipe", "sleep 60 & echo on", "on\n"),
    Case("many children hold the pipe", "for n in 1 2 3 4 5; do sleep 60 & done; echo on", "on\n"),
    Case("a child prints for ever", "yes & echo on", "left running"),
    Case("input is asked for", "cat; echo done", "done\n"),
    Case("a terminal is asked for", "read x < /dev/tty; echo done", "done\n"),
    Case("time runs out", "echo on; sleep 60", "ran out of time", exit=None),
    Case("it prints for ever", "yes", "ran out of time", exit=None),
    Case(
        "requests to end are ignored",
        "trap '' TERM INT HUP; echo deaf; while :; do sleep 0.2; done",
        "deaf\n",
        exit=None,
        grace=PROCESS_TERMINATE_SECONDS,
    ),
    Case(
        "it stops itself", "echo on; kill -STOP $$; echo off", "ran out of time", exit=None, grace=3
    ),
    Case("a daemon has left the group", "setsid sleep 61.7 & sleep 0.2; echo on", "left running"),
    Case(
        "a daemon forked twice",
        "(setsid sh -c 'sleep 61.8 & exit 0' &) ; sleep 0.2; echo on",
        "on\n",
    ),
    Case("output is closed early", "exec >&- 2>&-; sleep 0.3; exit 5", "(no output)", exit=5),
    Case(
        "output is closed and it goes on", "exec >&- 2>&-; sleep 60", "ran out of time", exit=None
    ),
    Case("a reader went away", "yes | head -n 2; echo done", "y\ny\ndone\n"),
    Case(
        "one line without an end",
        "head -c 30000000 /dev/zero | tr '\\0' x; echo",
        "Output cut here",
    ),
    Case("bytes that are not UTF-8", "printf 'a\\377\\376b and more text here'", "a\ufffd\ufffdb"),
    Case("half a character at the end", "printf 'caf\\303'", "caf\ufffd"),
    Case("NUL bytes", "printf 'one\\000two words'", "one\u2400two"),
    Case("binary output", "head -c 3000000 /dev/urandom", "Binary output"),
    Case("many processes at once", "for n in $(seq 300); do sleep 60 & done; echo on", "on\n"),
    Case(
        "a storm of forks, cut off in the middle of it",
        "ulimit -u 2000; f() { [ $1 = 0 ] || { f $(($1-1)) & f $(($1-1)) & }; sleep 60; }; "
        "f 8 & echo on",
        "on\n",
    ),
    Case("it ends its own group", "kill -9 0", "code 137", exit=137),
)


@requirement("S180", "S191")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_command_that_misbehaves_is_contained(
    bench: ToolBench, case: Case, figure: Figure
) -> None:
    if "setsid" in case.command and shutil.which("setsid") is None:
        cannot_run("setsid is not installed")
    script = f"echo $$ > group\n{case.command}"
    before, started = resident_bytes(), perf_counter()
    success = await bench.success("bash", command=script, timeout=int(TIMEOUT_SECONDS * 1_000))
    took = perf_counter() - started
    assert took <= TIMEOUT_SECONDS + case.grace + SLACK_SECONDS
    assert success.structured.get("exit") == case.exit
    assert case.says in text_of(success)
    no_longer_there(int((bench.root / "group").read_text()))
    assert resident_bytes() - before < GROWTH_BYTES_MAX
    figure("commands that misbehave", 1)


async def test_more_output_than_the_disk_should_hold_is_cut_with_a_note(
    bench: ToolBench, figure: Figure
) -> None:
    before = resident_bytes()
    command = f"yes | head -c {FLOOD_BYTES}; echo the end"
    success = await bench.success("bash", command=command, timeout=50_000)
    (path,) = success.output_paths
    assert Path(path).stat().st_size == TOOL_OUTPUT_FILE_BYTES_MAX
    text = text_of(success)
    assert f"The first {TOOL_OUTPUT_FILE_BYTES_MAX} bytes are kept in {path}" in text
    assert text.endswith("the end\nCommand exited with code 0.")
    assert resident_bytes() - before < GROWTH_BYTES_MAX
    figure("bytes of the largest output", FLOOD_BYTES)


async def test_a_daemon_that_holds_our_output_is_found_and_ended(bench: ToolBench) -> None:
    if shutil.which("setsid") is None:
        cannot_run("setsid is not installed")
    leave = "setsid sh -c 'echo $$ > daemon; exec sleep 62' & while [ ! -s daemon ]; do :; done"
    await bench.success("bash", command=leave)
    no_longer_there(int((bench.root / "daemon").read_text()))


async def test_interrupting_a_flood_ends_it_and_keeps_memory_small(bench: ToolBench) -> None:
    os.mkfifo(bench.root / "running")
    os.mkfifo(bench.root / "flooded")
    flood = f"yes | head -c {4 * BASH_OUTPUT_BYTES_MAX}; echo > flooded; yes"
    before = resident_bytes()
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.call("bash", command=f"echo $$ > running; {flood}"))
        leader = int(await asyncio.to_thread((bench.root / "running").read_text))
        await asyncio.to_thread((bench.root / "flooded").read_text)
        call.cancel()
    assert call.cancelled()
    assert any(bench.outputs.iterdir())
    no_longer_there(leader)
    assert resident_bytes() - before < GROWTH_BYTES_MAX


async def test_many_floods_at_once_share_the_machine(bench: ToolBench) -> None:
    before = resident_bytes()
    size = 4 * BASH_OUTPUT_BYTES_MAX
    calls = (bench.success("bash", command=f"yes {n} | head -c {size}") for n in range(8))
    async with asyncio.timeout(30):
        found = await asyncio.gather(*calls)
    for number, success in enumerate(found):
        (path,) = success.output_paths
        line = f"{number}\n".encode()
        assert Path(path).read_bytes() == (line * size)[:size]
    assert resident_bytes() - before < 8 * GROWTH_BYTES_MAX


def no_longer_there(group: int) -> None:
    """Spins for a moment: a process that was killed takes a while to be dead."""
    deadline = perf_counter() + 5
    while table.has_members(group):
        assert perf_counter() < deadline, f"group {group} lives on"


def resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
