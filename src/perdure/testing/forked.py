"""Running a piece of work in a process of its own, and learning how it ended.

A fork starts with everything imported, which makes a process cheap enough to kill hundreds. It is
safe only where nothing else runs: the caller has no threads and no running event loop.
"""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Final, NoReturn

from perdure.schema.value import Value

_SECONDS_MAX: Final = 20
"""A child that hangs is ended by the alarm, which no one can take for the death it was to die."""


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
    assert threading.active_count() == 1, "a fork would leave the other threads behind"
    reader, writer = os.pipe()
    # What is buffered here would otherwise be written twice.
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _live(work, writer)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), said)


def _live(work: Callable[[int], None], writer: int) -> NoReturn:
    """Never returns: the rest of the caller is not the child's to run."""
    signal.alarm(_SECONDS_MAX)
    code = 1
    try:
        work(writer)
        code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
