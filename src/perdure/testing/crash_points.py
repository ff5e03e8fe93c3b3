"""Crash points: named moments at which a process can be made to die, counted as they come.

The points lie in the seams that the composition root takes anyway (`crash_seams`), so production
code knows nothing of them. Death is a real SIGKILL: no handler runs, nothing is flushed.

Invariant: a point is reported before the process dies at it. The same program on the same data
reaches the same points, with the same numbers and names.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable

from perdure.schema.value import Value


class CrashPoint(Value):
    number: int
    """Counted from 1 in each run."""
    name: str
    """What has just happened, and its count: `write/committed[prompted]#2` is the second."""

    def __str__(self) -> str:
        return f"{self.number} {self.name}"


class CrashPoints:
    """The points of one run. With `die_at` the run ends at the point of that number."""

    def __init__(self, report: Callable[[CrashPoint], None], *, die_at: int | None = None) -> None:
        self._report = report
        self._die_at = die_at
        self._number = 0
        self._times: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        self._number += 1
        self._times[name] += 1
        self._report(CrashPoint(self._number, f"{name}#{self._times[name]}"))
        if self._number == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def write_line(descriptor: int, point: CrashPoint) -> None:
    """Report a point through a pipe, at once: what is written there outlives the process."""
    os.write(descriptor, f"{point}\n".encode())


def read_lines(reported: bytes) -> tuple[CrashPoint, ...]:
    """The points that `write_line` reported."""
    lines = (line.split(" ", 1) for line in reported.decode().splitlines())
    return tuple(CrashPoint(int(number), name) for number, name in lines)
