"""Ports for terminals: programs behind a real PTY."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perdure.schema.files.pty import PtySize


class Terminal(Protocol):
    """A program with a controlling terminal."""

    @property
    def pid(self) -> int: ...
    async def run(self) -> int:
        """Wait for its exit code. Awaited once; cancelling it ends the program."""
        ...

    async def write(self, data: bytes) -> None:
        """Send input; waits while too much is unread."""
        ...

    def resize(self, size: PtySize) -> None: ...
    async def end(self) -> None:
        """Hang up, then kill; returns when it is over."""
        ...

    def kill(self) -> None:
        """Kill everything that runs in the terminal."""
        ...


class TerminalHost(Protocol):
    async def open(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        size: PtySize,
        heard: Callable[[str], None],
    ) -> Terminal:
        """Start a program by its absolute path; `heard` receives its output and never waits.

        Raises OSError if it cannot start.
        """
        ...
