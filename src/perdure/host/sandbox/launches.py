"""Starts launchers by a small process that forks them (host.sandbox.launch_server).

It is started with the first command and ends with this process. If it dies or does not answer, it
is started again, and if that fails too, the caller starts the launcher itself, which takes longer.
"""

import asyncio
import os
import platform
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from perdure.host.process import spawn
from perdure.host.process.launched import HeldChild

_ROOT: Final = Path(__file__).resolve().parents[3]
_CLONE_NUMBERS: Final = {"x86_64": 56, "aarch64": 220}
_ANSWER_SECONDS: Final = 5.0
_ANSWER_BYTES: Final = 32
_LENGTH_BYTES: Final = 4


def program(module: str, before: str = "pass") -> tuple[str, ...]:
    """The command line that runs a module of this package without site packages.

    `before` is a statement that runs when the module is loaded.
    """
    code = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r});"
        f" from perdure.host.sandbox import {module}; {before}; {module}.main()"
    )
    return (sys.executable, "-I", "-S", "-c", code)


LAUNCHER: Final = program("launcher")
SERVER: Final = program("launch_server")


class Launches:
    """Adapter of host.process.launched.Starter. One for the process."""

    def __init__(
        self, *, server: Sequence[str] = SERVER, answer_seconds: float = _ANSWER_SECONDS
    ) -> None:
        self._program = server
        self._answer_seconds = answer_seconds
        self._number = _CLONE_NUMBERS.get(platform.machine())
        self._server: _Server | None = None
        self._one_at_a_time = asyncio.Lock()
        self._closed = False

    @property
    def server(self) -> int | None:
        """The process id of the small process, while there is one."""
        return None if self._server is None else self._server.pid

    def accepts(self, arguments: Sequence[str]) -> bool:
        known = self._number is not None and not self._closed
        return known and tuple(arguments[: len(LAUNCHER)]) == LAUNCHER

    async def start(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], output: int, errors: int
    ) -> HeldChild | None:
        words = arguments[len(LAUNCHER) :]
        variables = (f"{name}={value}" for name, value in environment.items())
        text = "".join(f"{word}\0" for word in (str(len(words)), *words, *variables))
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._start, os.fsencode(text), output, errors)

    async def aclose(self) -> None:
        """End the process. Commands that it started go on."""
        self._closed = True
        async with self._one_at_a_time:
            await asyncio.to_thread(self._discard)

    def _start(self, request: bytes, output: int, errors: int) -> HeldChild | None:
        for _ in range(2):
            go, release = os.pipe()
            try:
                if self._server is None:
                    words = (*self._program, str(self._number))
                    self._server = _Server(words, self._answer_seconds)
                pid = self._server.ask(request, (output, errors, go))
                return HeldChild(pid, release)
            except OSError:
                # A launcher that was forked all the same exits when the pipe is closed.
                os.close(release)
                self._discard()
            finally:
                os.close(go)
        return None

    def _discard(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.end()


class _Server:
    def __init__(self, words: Sequence[str], answer_seconds: float) -> None:
        self._connection, other = socket.socketpair()
        try:
            self._connection.settimeout(answer_seconds)
            self.pid = spawn.start_program(
                words,
                environment=spawn.bare_environment(),
                files=(
                    (os.POSIX_SPAWN_DUP2, other.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ),
            )
        except BaseException:
            self._connection.close()
            raise
        finally:
            other.close()

    def ask(self, request: bytes, files: Sequence[int]) -> int:
        """The process id of a new launcher. Raises OSError."""
        length = len(request).to_bytes(_LENGTH_BYTES, "big")
        socket.send_fds(self._connection, [length], list(files))
        self._connection.sendall(request)
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._connection.recv(_ANSWER_BYTES)
            if not part:
                raise ConnectionError("the launch server has ended")
            answer += part
        return int(answer)

    def end(self) -> None:
        self._connection.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
