"""Ports for the sources of nondeterminism: time, chance and ids.

A simulation supplies its own from a seed.
"""

from typing import Protocol

from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID


class Clock(Protocol):
    def now_millis(self) -> int:
        """Wall-clock milliseconds since the epoch, for records; never for ordering or waiting."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Chance(Protocol):
    """Random numbers for jitter. Nothing stored depends on them."""

    def random(self) -> float:
        """A random number from [0, 1)."""
        ...


class IdSource(Protocol):
    def session(self) -> SessionID: ...
    def message(self) -> MessageID: ...
    def event(self) -> EventID: ...
    def permission(self) -> PermissionID: ...
    def named(self, prefix: str) -> str:
        """A fresh id of any other kind, such as a managed file."""
        ...
