"""Real terminals: who runs in one, what it prints, and that it always comes to an end."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.process.pty import LocalPty, LocalPtys
from perdure.schema.files.pty import PtySize

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


@contextmanager
def ignoring(*numbers: signal.Signals) -> Generator[None]:
    """As a process that was started to ignore these signals."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    # /dev/tty can be opened only by a process with a controlling terminal.
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


@pytest.mark.parametrize("ignored", [(), (signal.SIGINT, signal.SIGQUIT)], ids=["front", "back"])
@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
async def test_control_c_reaches_the_program_in_front_however_we_were_started(
    tmp_path: Path, key: bytes, number: signal.Signals, ignored: tuple[signal.Signals, ...]
) -> None:
    # Whatever a script starts with "&" ignores both keys, and so would all that it starts.
    script = "ulimit -c 0; trap : INT QUIT; sed s/^/seen:/; echo over:$?; exit 7"
    with ignoring(*ignored):
        async with shell(script, tmp_path) as (terminal, screen, running):
            await terminal.write(b"hello\n")
            # Only who is in front reads what is typed: one press is enough now.
            await screen.until("seen:hello")
            await terminal.write(key)
            assert await running == 7
            assert f"over:{128 + number}" in screen.text


async def test_a_hang_up_ends_a_program_though_we_were_started_to_outlive_ours(
    tmp_path: Path,
) -> None:
    with ignoring(signal.SIGHUP):
        async with shell("echo ready; exec sleep 60", tmp_path) as (terminal, screen, running):
            await screen.until("ready")
            await terminal.end()
            assert await running == 128 + signal.SIGHUP


async def test_a_program_whose_end_nobody_may_see_is_over_all_the_same(tmp_path: Path) -> None:
    with ignoring(signal.SIGCHLD):
        async with shell("sh -c 'exit 3'; echo \"inner:$?\"", tmp_path) as (_, screen, running):
            assert await running == 255
            assert "inner:3" in screen.text


async def test_files_that_we_were_started_with_are_not_handed_on(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        async with shell("ls -l /proc/self/fd; echo over", tmp_path) as (_, screen, running):
            assert await running == 0
            assert "over" in screen.text
            assert "lock" not in screen.text


@pytest.mark.parametrize("name", ["-", "-P", " a  b ", "$(echo no)", "it's", "gr\u00fc\u00df"])
async def test_a_program_begins_in_its_directory_whatever_that_is_called(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    async with shell('echo "<$PWD>${OLDPWD-}"', tmp_path / name) as (_, screen, running):
        assert await running == 0
        assert screen.text == f"<{tmp_path / name}>\r\n"


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
        assert await running == 128 + signal.SIGHUP
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
    (tmp_path / "file").touch()
    for name, refusal in (("missing", FileNotFoundError), ("file", NotADirectoryError)):
        with pytest.raises(refusal):
            async with shell("true", tmp_path / name):
                pass
    assert len(os.listdir("/proc/self/fd")) <= before + 1
