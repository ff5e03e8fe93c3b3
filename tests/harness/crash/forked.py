"""Running a piece of work in a process of its own, and learning how it ended.

A fork starts with everything imported, which makes a process cheap enough to kill hundreds. It is
safe only where nothing else runs: the caller has no threads and no running event loop.

One process can be the model of many deaths. At a moment that its caller chose it forks, its copy is
killed there and then, and it stands still while the caller looks at the files as that death left
them. A copy does nothing but die, so it does not matter what a fork inherits and what it loses.
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
"""A child that hangs is ended by the alarm, which no one can take for the death it was to die."""
_GO_ON: Final = b"!"
_NUMBER_BYTES_MAX: Final = 64


class Ended(Value):
    code: int
    """The exit code; a signal that killed it, negated."""
    said: bytes
    """What it wrote to its descriptor."""

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def run_forked(work: Callable[[int], None]) -> Ended:
    """Do `work` in a child, which may report through the descriptor it is given."""
    # A file, not a pipe: nobody is woken for each word, and no word waits for a reader.
    with tempfile.TemporaryFile() as said:
        child = _fork(lambda: work(said.fileno()))
        return _ended(child, said)


class Mortal:
    """What a child has in hand whose copies die: it says which moment this is."""

    def __init__(self, descriptor: int, moments: Collection[int], caller: socket.socket) -> None:
        self.descriptor = descriptor
        self._moments = moments
        self._caller = caller

    def reach(self, moment: int) -> None:
        """If a copy is to die at this moment it does, and we go on when the caller has looked."""
        if moment not in self._moments:
            return
        signal.alarm(0)
        copy = os.fork()
        if copy == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        _, status = os.waitpid(copy, 0)
        self._caller.send(f"{moment} {os.waitstatus_to_exitcode(status)}".encode())
        if self._caller.recv(len(_GO_ON)) != _GO_ON:
            raise ConnectionError("nobody is there any more for whom to go on")
        signal.alarm(_SECONDS_MAX)


def dying(
    work: Callable[[Mortal], None], moments: Collection[int]
) -> Generator[tuple[int, Ended], None, Ended]:
    """Do `work` in a child, a copy of which dies at each of the `moments`.

    Yields the moment, and how the copy ended and what had been said by then. Until the next one is
    asked for the child stands still. Returns how the child itself ended.
    """
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as said:

        def mortal() -> None:
            ours.close()
            work(Mortal(said.fileno(), moments, theirs))

        with theirs:
            child = _fork(mortal)
        try:
            while death := ours.recv(_NUMBER_BYTES_MAX):
                moment, code = map(int, death.split())
                yield moment, Ended(code, _said(said))
                ours.send(_GO_ON)
        except GeneratorExit:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        return _ended(child, said)


def _fork(work: Callable[[], None]) -> int:
    assert threading.active_count() == 1, "a fork would leave the other threads behind"
    # What is buffered here would otherwise be written twice.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _live(work)
    return child


def _live(work: Callable[[], None]) -> NoReturn:
    """Never returns: the rest of the caller is not the child's to run."""
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


def _ended(child: int, said: BinaryIO) -> Ended:
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), _said(said))


def _said(said: BinaryIO) -> bytes:
    """From its start, and without moving the place where a child goes on writing."""
    return os.pread(said.fileno(), os.fstat(said.fileno()).st_size, 0)
