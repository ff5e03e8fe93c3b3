"""Processes of the program that need not load it first: one process has, and forks itself.

Loading is most of what a short life costs, and tests start hundreds. What runs is the `perdure`
command in a process of its own, with its own environment, directory and files, to be killed like
any other. How a start from nothing goes is asked in `tests/contract/cli/commands/test_serve.py`.

Invariant: the process that forks has no threads and no event loop, and opens nothing.
"""

import atexit
import gc
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from struct import Struct
from tempfile import TemporaryFile
from typing import Final, TextIO

import perdure
from perdure.schema import codec

READY_SECONDS_MAX: Final = 60
_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_ORDERED: Final = b"!"
_NUMBER: Final = Struct("!i")
_LEFT_OUT: Final = ("perdure.testing", "perdure.host.telemetry", "perdure.client.generated")
"""Not of the program, or only loaded by who asks for it."""


class Child:
    """A process that was started."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line
        """On which its end is told."""
        self._code: int | None = None

    @property
    def has_ended(self) -> bool:
        return self._code is not None or bool(select.select([self._line], [], [], 0)[0])

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> int:
        """The exit code; a signal that killed it, negated. Raises TimeoutError."""
        if self._code is None:
            self._line.settimeout(seconds)
            self._code = _heard(self._line)
            self._line.close()
        return self._code

    def end(self) -> None:
        """Whatever it is doing."""
        if not self.has_ended:
            self.signal(signal.SIGKILL)
        self.wait(READY_SECONDS_MAX)


class Nursery:
    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=_ROOT,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT / "src")},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Whoever interrupts the tests at a terminal means them: it ends when they do.
                start_new_session=True,
            )

    def start(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str],
        directory: Path,
        files: tuple[int, int, int],
    ) -> Child:
        """`perdure` with these arguments, standard input, output and error."""
        ours, theirs = socket.socketpair()
        with theirs, TemporaryFile() as order:
            order.write(codec.encode((list(arguments), dict(variables), str(directory))))
            order.seek(0)
            handed = (*files, order.fileno(), theirs.fileno())
            socket.send_fds(self._orders, [_ORDERED], handed)
        ours.settimeout(READY_SECONDS_MAX)
        return Child(_heard(ours), ours)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


@cache
def nursery() -> Nursery:
    """The one of this process."""
    made = Nursery()
    atexit.register(made.close)
    return made


def run(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str],
    directory: Path,
    input: str,
    seconds_max: float,
) -> subprocess.CompletedProcess[str]:
    """Run to the end, without a terminal. Raises TimeoutError."""
    with ExitStack() as stack:
        made = [stack.enter_context(TemporaryFile("w+", encoding="utf-8")) for _ in range(3)]
        made[0].write(input)
        made[0].seek(0)
        files = (made[0].fileno(), made[1].fileno(), made[2].fileno())
        child = nursery().start(arguments, variables=variables, directory=directory, files=files)
        stack.callback(child.end)
        code = child.wait(seconds_max)
        return subprocess.CompletedProcess(list(arguments), code, *map(_whole, made[1:]))


def started(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str],
    directory: Path,
    errors: int,
    input: int | None = None,
) -> tuple[Child, TextIO]:
    """A process, and what it writes to its output; whoever starts it ends it."""
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        files = (nothing if input is None else input, writing, errors)
        child = nursery().start(arguments, variables=variables, directory=directory, files=files)
    finally:
        os.close(nothing)
        os.close(writing)
    return child, open(reading, encoding="utf-8")


def _whole(file: TextIO) -> str:
    file.seek(0)
    return file.read()


Order = tuple[list[str], dict[str, str], str]
"""Arguments, environment and directory."""


def next_child(orders: socket.socket) -> Order | None:
    """Fork for each order. Returns its order in a child, and nothing when there are no more."""
    lines: dict[int, socket.socket] = {}
    deaths, told = os.pipe()
    os.set_blocking(told, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(told)
    while True:
        ready, _, _ = select.select([orders, deaths], [], [])
        if deaths in ready:
            os.read(deaths, 4096)
            _bury(lines)
        if orders not in ready:
            continue
        message, files, _, _ = socket.recv_fds(orders, len(_ORDERED), 5)
        if not message:
            for pid in lines:
                os.kill(pid, signal.SIGKILL)
            return None
        assert threading.active_count() == 1, "a fork would leave the other threads behind"
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for file in (deaths, told, orders.detach()):
                os.close(file)
            return _born(files)
        *done, line = files
        for file in done:
            os.close(file)
        lines[pid] = socket.socket(fileno=line)
        _say(lines[pid], pid)


def _born(files: Sequence[int]) -> Order:
    """Become what a new process would be."""
    *standard, order, line = files
    os.close(line)
    with open(order, "rb") as written:
        arguments, variables, directory = codec.decode(Order, written.read())
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    # Anew: they remember what kind of file they were made for.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(directory)
    sys.path[0] = directory
    sys.argv = ["perdure", *arguments]
    return arguments, variables, directory


def _bury(lines: dict[int, socket.socket]) -> None:
    """Tell how those ended that have."""
    for pid in tuple(lines):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            with lines.pop(pid) as line:
                _say(line, os.waitstatus_to_exitcode(status))


def _say(line: socket.socket, number: int) -> None:
    # A test that was given up no longer listens.
    with suppress(BrokenPipeError):
        line.sendall(_NUMBER.pack(number))


def _heard(line: socket.socket) -> int:
    (number,) = _NUMBER.unpack(line.recv(_NUMBER.size))
    return number


def _load() -> None:
    for module in pkgutil.walk_packages(perdure.__path__, "perdure."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    # What is there stays: no child looks for garbage in it, which would copy every page.
    gc.collect()
    gc.freeze()


def main() -> None:
    _load()
    order = next_child(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        status = import_module("perdure.cli.main").main(order[0])
        sys.stdout.flush()
        sys.stderr.flush()
        # Not torn down: that would touch, and so copy, everything that was loaded.
        os._exit(status)


if __name__ == "__main__":
    main()
