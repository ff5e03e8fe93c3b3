"""Runs work in forked processes, and reports how they ended.

A fork starts with everything imported, which makes a process cheap enough to kill hundreds. It is
safe only where nothing else runs: the caller has no threads and no running event loop.

One process can stand for many crashes. At each moment that its caller chose it forks, the copy is
killed, and the process stops while the caller checks the files as that crash left them. A copy does
nothing before it is killed, so it does not matter what a fork inherits and what it loses.
"""

import os
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Collection, Generator
from typing import BinaryIO, Final, NoReturn

from perdure.schema.value import Value

_SECONDS_MAX: Final = 20
"""A child that hangs is ended by the alarm, whose signal differs from that of a kill."""
_GO_ON: Final = b"!"
_NUMBER_BYTES_MAX: Final = 64


class Ended(Value):
    code: int
    """The exit code; a signal that killed it, negated."""
    output: bytes
    """What it wrote to its descriptor."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def run_forked(work: Callable[[int], None]) -> Ended:
    """Do `work` in a child, which may report through the descriptor it is given."""
    # A file, not a pipe: writing wakes no process and waits for no reader.
    with tempfile.TemporaryFile() as output:
        child = _fork(lambda: work(output.fileno()))
        return _ended(child, output)


class CrashingChild:
    """A child whose copies are killed: its work calls `reach` at each moment."""

    def __init__(self, descriptor: int, moments: Collection[int], caller: socket.socket) -> None:
        self.descriptor = descriptor
        self._moments = moments
        self._caller = caller

    def reach(self, moment: int) -> None:
        """Kill a copy, if the caller chose this moment, and continue when the caller says so."""
        if moment not in self._moments:
            return
        signal.alarm(0)
        copy = os.fork()
        if copy == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        _, status = os.waitpid(copy, 0)
        self._caller.send(f"{moment} {os.waitstatus_to_exitcode(status)}".encode())
        if self._caller.recv(len(_GO_ON)) != _GO_ON:
            raise ConnectionError("the caller is gone")
        signal.alarm(_SECONDS_MAX)


def kill_copies(
    work: Callable[[CrashingChild], None], moments: Collection[int]
) -> Generator[tuple[int, Ended], None, Ended]:
    """Do `work` in a child, a copy of which is killed at each of the `moments`.

    Yields the moment, how the copy ended and what had been written by then. The child stops until
    the next moment is asked for. Returns how the child itself ended.
    """
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as output:

        def run_child() -> None:
            ours.close()
            work(CrashingChild(output.fileno(), moments, theirs))

        with theirs:
            child = _fork(run_child)
        try:
            while killed := ours.recv(_NUMBER_BYTES_MAX):
                moment, code = map(int, killed.split())
                yield moment, Ended(code, _read(output))
                ours.send(_GO_ON)
        except GeneratorExit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        return _ended(child, output)


def _fork(work: Callable[[], None]) -> int:
    assert threading.active_count() == 1, "a fork would leave the other threads behind"
    # What is buffered here would otherwise be written by both processes.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _run_child(work)
    return child


def _run_child(work: Callable[[], None]) -> NoReturn:
    """Run the work and exit: the rest of the caller's code is not for the child."""
    signal.alarm(_SECONDS_MAX)
    code = 1
    try:
        work()
        code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(child: int, output: BinaryIO) -> Ended:
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), _read(output))


def _read(output: BinaryIO) -> bytes:
    """Read from the start, without moving the position at which a child writes."""
    return os.pread(output.fileno(), os.fstat(output.fileno()).st_size, 0)
