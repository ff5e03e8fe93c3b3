"""Programs that stay and are talked with, as real processes."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.process.piped import LocalPipedProcess, LocalPipedProcesses

ECHO = "import sys\nfor line in sys.stdin: print('>' + line, end='', flush=True)"
FAMILY = """
import os, subprocess, sys
child = subprocess.Popen(['sleep', '600'], preexec_fn=os.setpgrp)
print(child.pid, flush=True)
sys.stdin.read()
"""


@dataclass
class Talk:
    process: LocalPipedProcess | None = None
    said: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ends: int = 0

    def heard(self, data: bytes) -> None:
        self.said += data
        self.changed.set()

    def ended(self) -> None:
        self.ends += 1
        self.changed.set()

    async def until(self, said: bytes) -> None:
        while said not in self.said and not self.ends:
            self.changed.clear()
            await self.changed.wait()
        assert said in self.said

    async def end(self) -> None:
        while not self.ends:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def talking(
    script: str, tmp_path: Path, **variables: str
) -> AsyncGenerator[tuple[LocalPipedProcess, Talk]]:
    talk = Talk()
    async with asyncio.timeout(10):
        process = await LocalPipedProcesses().start(
            (sys.executable, "-S", "-c", script),
            directory=str(tmp_path),
            environment=variables,
            heard=talk.heard,
            ended=talk.ended,
        )
        try:
            yield process, talk
        finally:
            process.kill()
            await process.gone()
    assert talk.ends == 1


async def test_words_go_both_ways(tmp_path: Path) -> None:
    async with talking(ECHO, tmp_path) as (process, talk):
        for number in range(100):
            assert process.send(b"%d\n" % number)
        await talk.until(b">99\n")
        assert not process.over
    assert bytes(talk.said) == b"".join(b">%d\n" % number for number in range(100))


async def test_it_has_the_directory_and_the_variables_it_is_given(tmp_path: Path) -> None:
    script = "import os; print(os.getcwd(), sorted(os.environ), flush=True)"
    async with talking(script, tmp_path, LEVEL="2") as (_, talk):
        await talk.end()
    words = talk.said.decode()
    assert words.startswith(str(tmp_path))
    assert "'LEVEL'" in words
    assert "'HOME'" not in words


async def test_the_last_words_of_one_that_ends_are_heard_and_then_nothing_is_taken(
    tmp_path: Path,
) -> None:
    async with talking("print('x' * 200_000)", tmp_path) as (process, talk):
        await talk.end()
        assert len(talk.said) == 200_001
        assert process.over
        assert not process.send(b"anybody?")


async def test_one_that_reads_nothing_is_told_only_so_much(tmp_path: Path) -> None:
    async with talking("import signal; signal.pause()", tmp_path) as (process, _):
        half = b"x" * (limits.LSP_UNREAD_BYTES_MAX // 2)
        assert process.send(half)
        assert process.send(half)
        assert not process.send(half)


async def test_one_that_closes_its_input_takes_no_more(tmp_path: Path) -> None:
    script = "import os, signal; os.close(0); print('closed', flush=True); signal.pause()"
    async with talking(script, tmp_path) as (process, talk):
        await talk.until(b"closed")
        taken = True
        while taken:
            taken = process.send(b"x")
            await asyncio.sleep(0)


async def test_whoever_it_started_ends_with_it(tmp_path: Path) -> None:
    async with talking(FAMILY, tmp_path, PATH=os.environ["PATH"]) as (process, talk):
        await talk.until(b"\n")
        child = int(talk.said)
        process.kill()
        await process.gone()
        assert process.over
        while Path(f"/proc/{child}").exists():
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                break
            await asyncio.sleep(0)


async def test_a_child_that_keeps_the_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    script = "import subprocess; subprocess.Popen(['sleep', '600'])"
    async with talking(script, tmp_path, PATH=os.environ["PATH"]) as (process, talk):
        await talk.end()
        assert process.over


@pytest.mark.parametrize("program", ["/no/such/program", "/"])
async def test_what_cannot_start_is_told(tmp_path: Path, program: str) -> None:
    with pytest.raises(OSError, match=program):
        await LocalPipedProcesses().start(
            (program,),
            directory=str(tmp_path),
            environment={},
            heard=bytearray().extend,
            ended=lambda: None,
        )
