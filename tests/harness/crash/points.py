"""Crash points: named moments at which a process can be made to die, counted as they come.

The points lie in the seams that the composition root takes anyway (`crash_seams`), so production
code knows nothing of them. Death is a real SIGKILL: no handler runs, nothing is flushed. Either the
process itself dies at a point (`death_at`), or a copy of it does (`forked.Mortal`).

Invariant: a point is written down before the process dies at it. The same program on the same data
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
    """The points of one run: each is written to a file, and then its number goes to `fate`.

    It is written at once, and what is written there outlives the process.
    """

    def __init__(
        self, descriptor: int, *, fate: Callable[[int], None] = lambda number: None
    ) -> None:
        self._descriptor = descriptor
        self._fate = fate
        self._number = 0
        self._times: Counter[str] = Counter()

    def reach(self, name: str) -> None:
        self._number += 1
        self._times[name] += 1
        os.write(self._descriptor, f"{self._number} {name}#{self._times[name]}\n".encode())
        self._fate(self._number)


def death_at(number: int) -> Callable[[int], None]:
    """The fate of a process that dies at its point of that number."""

    def fate(reached: int) -> None:
        if reached == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fate


def read_lines(reported: bytes) -> tuple[CrashPoint, ...]:
    """The points that a run has written."""
    lines = (line.split(" ", 1) for line in reported.decode().splitlines())
    return tuple(CrashPoint(int(number), name) for number, name in lines)
