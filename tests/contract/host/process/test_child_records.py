"""Children of a process that is killed end with it, whatever port they were started through."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Final

import pytest

from perdure.host.process import orphans, table
from perdure.host.process.child_records import ChildRecords
from perdure.host.process.runner import LocalProcesses
from tests.support import polling

ARGUMENTS: Final = '("/bin/sh", "-c", "echo $$ >> pids; trap : HUP; while :; do sleep 0.1; done")'
STARTS: Final = {
    "a command": f"""
        from perdure.host.process.runner import LocalProcesses
        await LocalProcesses(records).run(
            {ARGUMENTS}, directory=here, timeout_seconds=60, output_bytes_max=9)
    """,
    "a language server": f"""
        from perdure.host.process.piped import LocalPipedProcesses
        await LocalPipedProcesses(records).start(
            {ARGUMENTS}, directory=here, environment={{}}, heard=print, ended=print)
        await asyncio.sleep(60)
    """,
    "a terminal": f"""
        from perdure.host.process.pty import LocalPtys
        from perdure.schema.files.pty import PtySize
        terminal = await LocalPtys(records).open(
            {ARGUMENTS}, directory=here, environment={{}}, size=PtySize(rows=9, cols=9),
            heard=print)
        await terminal.run()
    """,
}
PROGRAM: Final = """
import asyncio, sys
from perdure.host.process.child_records import ChildRecords
async def main():
    here = sys.argv[1]
    records = ChildRecords(here, "prc_parent")
{start}
asyncio.run(main())
"""


def pids(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "pids").read_text().split()]
    except FileNotFoundError:
        return []


def alive(folder: Path) -> list[int]:
    return [pid for pid in pids(folder) if table.read_identity(pid)]


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
async def test_it_ends_with_the_process_that_started_it(tmp_path: Path, start: str) -> None:
    program = PROGRAM.format(start=indent(dedent(start), "    "))
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(tmp_path)),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    await polling.until(lambda: alive(tmp_path))
    await polling.until(lambda: orphans.list_processes(str(tmp_path)))
    parent.kill()
    await parent.wait()
    await polling.until(lambda: not alive(tmp_path))
    await polling.until(lambda: not orphans.list_processes(str(tmp_path)))


async def test_a_terminal_keeps_what_left_it_on_purpose(tmp_path: Path) -> None:
    with ChildRecords(str(tmp_path), "prc_1").begin("session") as record:
        leader = await shell(record.mark(os.environ), "echo up; exec sleep 60")
        left = await shell(record.mark(os.environ), "echo up; exec sleep 60")
        record.started(leader.pid)
    ending = asyncio.to_thread(orphans.end, str(tmp_path), "prc_1")
    assert await ending == ()
    assert await leader.wait() == -signal.SIGTERM
    assert left.returncode is None
    left.kill()
    await left.wait()


async def test_a_process_that_reused_the_number_is_left_alone(tmp_path: Path) -> None:
    child = await shell(os.environ, "echo up; exec sleep 60")
    records = ChildRecords(str(tmp_path), "prc_1")
    with records.begin() as record:
        record.started(child.pid)
    path = next(tmp_path.glob("*.child"))
    path.write_text(path.read_text().replace(table.read_identity(child.pid), "boot:1"))
    assert await records.end_orphans("prc_1") == ()
    assert child.returncode is None
    assert not path.exists()
    child.kill()
    await child.wait()
    await records.aclose()


async def test_nothing_is_recorded_of_what_has_ended_or_never_started(tmp_path: Path) -> None:
    records = ChildRecords(str(tmp_path), "prc_1")
    runner = LocalProcesses(records)
    seen = await runner.run(
        ("/bin/sh", "-c", f"ls {tmp_path}; echo ${orphans.VARIABLE}"),
        directory=str(tmp_path),
        timeout_seconds=5,
        output_bytes_max=1_000,
    )
    assert seen.output == b"prc_1.1.child\nprc_1.1\n"
    with pytest.raises(FileNotFoundError):
        await runner.run(("/none",), directory=str(tmp_path), timeout_seconds=5, output_bytes_max=1)
    assert not orphans.list_processes(str(tmp_path))
    await records.aclose()


@pytest.mark.parametrize("content", ["", "1", "x y z w", "1 - tree ses_1", "\0\0"])
async def test_a_damaged_record_ends_nothing_and_is_removed(tmp_path: Path, content: str) -> None:
    (tmp_path / "prc_1.7.child").write_text(content)
    assert orphans.end(str(tmp_path), "prc_1") == ()
    assert not orphans.list_processes(str(tmp_path))


async def shell(environment: Mapping[str, str], script: str) -> asyncio.subprocess.Process:
    """A shell in a session of its own that has begun."""
    started = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", script),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout is not None
    assert await started.stdout.readline() == b"up\n"
    return started
