"""What makes two runs differ: the time, chance, and fresh ids.

A simulation gives its own, drawn from a seed.
"""

from typing import Protocol

from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID


class Clock(Protocol):
    def now_millis(self) -> int:
        """Wall-clock milliseconds since the epoch: for records, never for order or waiting."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Chance(Protocol):
    """Where waits are spread. Nothing that is kept depends on it."""

    def random(self) -> float:
        """A number of [0, 1)."""
        ...


class IdSource(Protocol):
    def session(self) -> SessionID: ...
    def message(self) -> MessageID: ...
    def event(self) -> EventID: ...
    def permission(self) -> PermissionID: ...
    def named(self, prefix: str) -> str:
        """A fresh id of any other kind, such as a managed file."""
        ...
