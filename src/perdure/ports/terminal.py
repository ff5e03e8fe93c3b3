"""Terminals: programs behind a real PTY."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perdure.schema.files.pty import PtySize


class Terminal(Protocol):
    """A program with a controlling terminal, and our end of it."""

    @property
    def pid(self) -> int: ...
    async def run(self) -> int:
        """Wait for its end; its exit code. Awaited once; cancelling it ends the program."""
        ...

    async def write(self, data: bytes) -> None:
        """Type; waits while too much of it is unread."""
        ...

    def resize(self, size: PtySize) -> None: ...
    async def end(self) -> None:
        """Hang up, then kill; returns when it is over."""
        ...

    def kill(self) -> None:
        """End everything that runs in the terminal, now."""
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
        """Start a program, whose path is absolute; `heard` takes what it prints, and never waits.

        Raises OSError when it cannot start.
        """
        ...
