"""Crash points: named moments at which a process can be killed, counted as they are reached.

The points are in wrappers of the ports that the composition root takes (`seams`), so production
code knows nothing of them. The kill is a real SIGKILL: no handler runs, nothing is flushed. Either
the process itself is killed at a point (`kill_at`), or a copy of it is (`forked.CrashingChild`).

Invariant: a point is written down before the process is killed at it. The same program on the same
data reaches the same points, with the same numbers and names.
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
    """The points of one run: each is written to a file, then `on_point` is called with its number.

    It is written at once, so that it is there after the process was killed.
    """

    def __init__(
        self, descriptor: int, *, on_point: Callable[[int], None] = lambda number: None
    ) -> None:
        self._descriptor = descriptor
        self._on_point = on_point
        self._number = 0
        self._times: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        self._number += 1
        self._times[name] += 1
        os.write(self._descriptor, f"{self._number} {name}#{self._times[name]}\n".encode())
        self._on_point(self._number)


def kill_at(number: int) -> Callable[[int], None]:
    """An `on_point` that kills the process at the point of that number."""

    def on_point(reached: int) -> None:
        if reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_point


def read_lines(reported: bytes) -> tuple[CrashPoint, ...]:
    """The points that a run has written."""
    lines = (line.split(" ", 1) for line in reported.decode().splitlines())
    return tuple(CrashPoint(int(number), name) for number, name in lines)
