"""Starts processes of the program quickly: one process loads it, and forks for each start.

Loading is most of what a short process costs, and tests start hundreds. What runs is the `perdure`
command in a process of its own, with its own environment, directory and files, which can be killed
like any other. A start from nothing is tested in `tests/contract/cli/commands/test_serve.py`.

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
_REQUEST: Final = b"!"
_NUMBER: Final = Struct("!i")
_LEFT_OUT: Final = ("perdure.testing", "perdure.host.telemetry", "perdure.client.generated")
"""Not part of the program, or loaded only on demand."""


class Child:
    """A process that was started."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self._connection = connection
        """Receives the exit code."""
        self._code: int | None = None

    @property
    def has_ended(self) -> bool:
        return self._code is not None or bool(select.select([self._connection], [], [], 0)[0])

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> int:
        """The exit code; a signal that killed it, negated. Raises TimeoutError."""
        if self._code is None:
            self._connection.settimeout(seconds)
            self._code = _receive_number(self._connection)
            self._connection.close()
        return self._code

    def end(self) -> None:
        """Kill the process, if it still runs."""
        if not self.has_ended:
            self.signal(signal.SIGKILL)
        self.wait(READY_SECONDS_MAX)


class ForkServer:
    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=_ROOT,
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT / "src")},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C at a terminal interrupts the tests alone: this process ends when they do.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process that forks: what is changed of its limits holds for those that it starts."""
        return self._process.pid

    def start(
        self,
        arguments: Sequence[str],
        *,
        variables: Mapping[str, str],
        directory: Path,
        files: tuple[int, int, int],
    ) -> Child:
        """Start `perdure` with these arguments, standard input, output and error."""
        ours, theirs = socket.socketpair()
        with theirs, TemporaryFile() as request:
            request.write(codec.encode((list(arguments), dict(variables), str(directory))))
            request.seek(0)
            handed = (*files, request.fileno(), theirs.fileno())
            socket.send_fds(self._requests, [_REQUEST], handed)
        ours.settimeout(READY_SECONDS_MAX)
        return Child(_receive_number(ours), ours)

    def close(self) -> None:
        self._requests.close()
        self._process.wait()


@cache
def shared() -> ForkServer:
    """The fork server of this process."""
    made = ForkServer()
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
        child = shared().start(arguments, variables=variables, directory=directory, files=files)
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
    """Start a process; the process and its output. The caller ends it."""
    reading, writing = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        files = (nothing if input is None else input, writing, errors)
        child = shared().start(arguments, variables=variables, directory=directory, files=files)
    finally:
        os.close(nothing)
        os.close(writing)
    return child, open(reading, encoding="utf-8")


def _whole(file: TextIO) -> str:
    file.seek(0)
    return file.read()


StartRequest = tuple[list[str], dict[str, str], str]
"""Arguments, environment and directory."""


def next_child(requests: socket.socket) -> StartRequest | None:
    """Fork for each request. Returns the request in a child, and None when there are no more."""
    connections: dict[int, socket.socket] = {}
    signals, signal_pipe = os.pipe()
    os.set_blocking(signal_pipe, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(signal_pipe)
    while True:
        ready, _, _ = select.select([requests, signals], [], [])
        if signals in ready:
            os.read(signals, 4096)
            _report_ended(connections)
        if requests not in ready:
            continue
        message, files, _, _ = socket.recv_fds(requests, len(_REQUEST), 5)
        if not message:
            for pid in connections:
                os.kill(pid, signal.SIGKILL)
            return None
        assert threading.active_count() == 1, "a fork would leave the other threads behind"
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for file in (signals, signal_pipe, requests.detach()):
                os.close(file)
            return _become_child(files)
        *done, connection = files
        for file in done:
            os.close(file)
        connections[pid] = socket.socket(fileno=connection)
        _send_number(connections[pid], pid)


def _become_child(files: Sequence[int]) -> StartRequest:
    """Set up the child as a new process would be."""
    *standard, request, connection = files
    os.close(connection)
    with open(request, "rb") as written:
        arguments, variables, directory = codec.decode(StartRequest, written.read())
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    # New objects: the old ones remember what kind of file they were made for.
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(directory)
    sys.path[0] = directory
    sys.argv = ["perdure", *arguments]
    return arguments, variables, directory


def _report_ended(connections: dict[int, socket.socket]) -> None:
    """Send the exit codes of the children that have ended."""
    for pid in tuple(connections):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            with connections.pop(pid) as connection:
                _send_number(connection, os.waitstatus_to_exitcode(status))


def _send_number(connection: socket.socket, number: int) -> None:
    # A test that was cancelled no longer listens.
    with suppress(BrokenPipeError):
        connection.sendall(_NUMBER.pack(number))


def _receive_number(connection: socket.socket) -> int:
    (number,) = _NUMBER.unpack(connection.recv(_NUMBER.size))
    return number


def _load() -> None:
    for module in pkgutil.walk_packages(perdure.__path__, "perdure."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    # No child collects garbage among what is loaded, which would copy every page.
    gc.collect()
    gc.freeze()


def main() -> None:
    _load()
    request = next_child(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        status = import_module("perdure.cli.main").main(request[0])
        sys.stdout.flush()
        sys.stderr.flush()
        # Without finalization, which would touch, and so copy, everything that was loaded.
        os._exit(status)


if __name__ == "__main__":
    main()
