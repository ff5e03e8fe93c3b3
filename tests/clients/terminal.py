"""A program in a terminal: a PTY whose screen a terminal emulator draws, for tests to read.

A test types, and waits for what the screen should show, always with a deadline.
"""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pyte

COLUMNS: Final = 110
LINES: Final = 44
SECONDS_MAX: Final = 20
_READ_BYTES: Final = 65_536
_KEYS: Final = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "backspace": "\x7f",
    "page up": "\x1b[5~",
}


class Terminal:
    def __init__(self, pid: int, file: int) -> None:
        self._pid = pid
        self._file = file
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = asyncio.Event()
        self._screen.write_process_input = self.type

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def background(self, text: str) -> str:
        """The background colour of the first place that shows `text`; "" if none does."""
        for number, line in enumerate(self._screen.display):
            if (column := line.find(text)) >= 0:
                return self._screen.buffer[number][column].bg
        return ""

    def read(self) -> None:
        try:
            data = os.read(self._file, _READ_BYTES)
        except OSError:  # how a PTY says that the program has ended
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._file)
        self._stream.feed(data)
        self._changed.set()

    def type(self, data: str) -> None:
        os.write(self._file, data.encode())

    def press(self, *keys: str) -> None:
        """Press keys one after another: a name above, `ctrl+x`, or the character itself."""
        for key in keys:
            if key.startswith("ctrl+"):
                self.type(chr(ord(key[-1]) & 0x1F))
            else:
                self.type(_KEYS.get(key, key))

    async def until(self, *wanted: str | Callable[[str], bool], without: Sequence[str] = ()) -> str:
        """Wait until the screen shows all of `wanted` and nothing of `without`; its text."""
        try:
            async with asyncio.timeout(SECONDS_MAX):
                while not _shows(self.text, wanted, without):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(
                f"After {SECONDS_MAX} s the screen does not show {wanted} without {without}:\n"
                f"{self.text}"
            ) from None
        return self.text


def _shows(
    text: str, wanted: Sequence[str | Callable[[str], bool]], without: Sequence[str]
) -> bool:
    met = all(each in text if isinstance(each, str) else each(text) for each in wanted)
    return met and not any(each in text for each in without)


@asynccontextmanager
async def terminal(
    *command: str, variables: Mapping[str, str], directory: Path
) -> AsyncGenerator[Terminal]:
    """Run `command` in a terminal until the block ends, then kill it."""
    pid, file = pty.fork()
    if pid == 0:
        try:
            os.chdir(directory)
            os.execve(command[0], command, dict(variables))
        finally:
            os._exit(127)
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    opened = Terminal(pid, file)
    loop = asyncio.get_running_loop()
    loop.add_reader(file, opened.read)
    try:
        yield opened
    finally:
        loop.remove_reader(file)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, pid, 0)
        os.close(file)
