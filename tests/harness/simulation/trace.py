"""What happened in a simulation, as lines to read and as one digest to compare.

The digest takes in everything that the runtime made: steps, durable events, requests. Names of
temporary directories are left out of it, so that equal seeds give equal digests on any machine.
"""

import hashlib
from collections.abc import Callable

from tests.harness.simulation.virtual_loop import VirtualLoop


class Trace:
    def __init__(
        self, loop: VirtualLoop, *, place: str, show: Callable[[str], None] | None = None
    ) -> None:
        self._loop = loop
        self._place = place
        self._show = show
        self._digest = hashlib.sha256()
        self._sealed = False
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """One line, and part of the digest."""
        if self._sealed:
            return
        line = f"{self._loop.time():10.3f} {self.neutral(text)}"
        self.lines.append(line)
        self.take_in(line.encode())
        if self._show is not None:
            self._show(line)

    def take_in(self, data: bytes) -> None:
        """Part of the digest only."""
        self._digest.update(data.replace(self._place.encode(), b"/place"))

    def seal(self) -> None:
        """The run is over: what is still said is not part of it."""
        self._sealed = True

    def digest(self) -> str:
        return self._digest.hexdigest()

    def neutral(self, text: str) -> str:
        """Without the name of the temporary directory."""
        return text.replace(self._place, "/place")
