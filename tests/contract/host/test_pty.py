"""Real terminals: who runs in one, what it prints, and that it always comes to an end."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.pty import LocalPty, LocalPtys
from perdure.schema.pty import PtySize

SIZE = PtySize(rows=24, cols=80)
PATIENCE_SECONDS = 10


class Screen:
    def __init__(self) -> None:
        self.text = ""
        self._changed = asyncio.Event()

    def heard(self, text: str) -> None:
        self.text += text
        self._changed.set()

    async def until(self, wanted: str) -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while wanted not in self.text:
                self._changed.clear()
                await self._changed.wait()
        return self.text


@asynccontextmanager
async def shell(
    script: str, directory: Path
) -> AsyncGenerator[tuple[LocalPty, Screen, asyncio.Task[int]]]:
    screen = Screen()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color"}
    terminal = await LocalPtys().open(
        ("/bin/sh", "-c", script),
        directory=str(directory),
        environment=environment,
        size=SIZE,
        heard=screen.heard,
    )
    async with asyncio.timeout(PATIENCE_SECONDS * 2), asyncio.TaskGroup() as group:
        running = group.create_task(terminal.run())
        try:
            yield terminal, screen, running
        finally:
            terminal.kill()


async def gone(process: int) -> None:
    """Wait for the end of a process that is not our child."""
    over = asyncio.Event()
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, over.set)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await over.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_a_program_has_a_controlling_terminal_of_its_own(tmp_path: Path) -> None:
    # /dev/tty can be opened by who has a controlling terminal and by nobody else.
    script = 'tty; pwd; stty size; echo "mine:$(ps -o sid= -p $$)"; echo heard > /dev/tty'
    async with shell(script, tmp_path) as (terminal, screen, running):
        assert await running == 0
        assert "/dev/" in screen.text
        assert f"{tmp_path}\r\n24 80\r\n" in screen.text
        assert screen.text.endswith("heard\r\n")
        assert f"mine:{terminal.pid}" in screen.text.replace(" ", "")


async def test_what_is_typed_is_read_and_a_resize_is_noticed(tmp_path: Path) -> None:
    script = 'echo ready; while read -r line; do echo "<$line>"; stty size; done'
    async with shell(script, tmp_path) as (terminal, screen, running):
        await screen.until("ready")
        terminal.resize(PtySize(rows=50, cols=132))
        await terminal.write("gr\u00fc\u00df dich\n".encode())
        await screen.until("<gr\u00fc\u00df dich>")
        await screen.until("50 132")
        await terminal.write(b"\x04")
        assert await running == 0


async def test_control_c_reaches_the_program_in_front(tmp_path: Path) -> None:
    script = "trap : INT; sed s/^/seen:/; echo over:$?; exit 7"
    async with shell(script, tmp_path) as (terminal, screen, running):
        await terminal.write(b"hello\n")
        await screen.until("seen:hello")
        while not running.done():
            # Pressed again, as a person does who sees nothing happen.
            await terminal.write(b"\x03")
            await asyncio.wait((running,), timeout=2)
        assert running.result() == 7
        assert "over:130" in screen.text


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -TERM $$", 128 + 15)])
async def test_the_exit_code_is_told(tmp_path: Path, script: str, code: int) -> None:
    async with shell(script, tmp_path) as (_, _, running):
        assert await running == code


async def test_everything_printed_before_the_end_is_heard(tmp_path: Path) -> None:
    async with shell("seq 1 20000", tmp_path) as (_, screen, running):
        assert await running == 0
        assert screen.text == "".join(f"{number}\r\n" for number in range(1, 20_001))


async def test_characters_that_come_in_pieces_are_put_together(tmp_path: Path) -> None:
    script = r"printf '\342\202'; printf '\254 \377'; printf '\342'"
    async with shell(script, tmp_path) as (_, screen, running):
        assert await running == 0
        assert screen.text == "\u20ac \ufffd\ufffd"


async def test_a_program_that_reads_nothing_holds_up_who_types_and_nobody_else(
    tmp_path: Path,
) -> None:
    async with shell("stty raw -echo; echo ready; sleep 60", tmp_path) as (
        terminal,
        screen,
        running,
    ):
        await screen.until("ready")
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            group.create_task(_type(terminal, limits.PTY_TYPED_BYTES_MAX * 2))
            terminal.resize(SIZE)
            await terminal.end()
        # Whoever was started to outlive its terminal has children that ignore a hang-up, too.
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert await running == 128 + (signal.SIGKILL if ignored else signal.SIGHUP)
        await terminal.write(b"after the end")


async def _type(terminal: LocalPty, size: int) -> None:
    for _ in range(0, size, 4_096):
        await terminal.write(b"x" * 4_096)


async def test_a_program_that_will_not_go_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    script = (
        "trap '' HUP TERM INT; set -m; sleep 60 & echo \"job:$!:end\"; while :; do sleep 1; done"
    )
    async with shell(script, tmp_path) as (terminal, screen, running):
        text = await screen.until(":end")
        job = int(text.split(":")[1])
        assert os.getsid(job) == terminal.pid
        await terminal.end()
        assert await running == 128 + signal.SIGKILL
        await gone(job)


async def test_whoever_stops_waiting_ends_the_program(tmp_path: Path) -> None:
    async with shell("trap '' HUP; echo ready; sleep 60", tmp_path) as (terminal, screen, running):
        await screen.until("ready")
        running.cancel()
        await asyncio.wait([running])
        assert not os.path.exists(f"/proc/{terminal.pid}")


async def test_descriptors_are_given_back(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        async with shell("echo hi", tmp_path) as (_, _, running):
            await running
    with pytest.raises(OSError, match="No such file"):
        async with shell("true", tmp_path / "missing"):
            pass
    assert len(os.listdir("/proc/self/fd")) <= before + 1
