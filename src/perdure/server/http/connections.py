"""The connections of one server: how many there may be, and which one is closed for another.

At the limit a new connection takes the place of one that waits for a request: the oldest of those
that have had no request answered, else the one that has been idle for longest. If all are busy,
the new one is refused. Connections that are on their way out are few, and do not count. The limit
falls when the system has no descriptor for a new one, and rises again slowly.
"""

import asyncio
from typing import Protocol

from perdure.core.limits import CONNECTIONS_LEAVING_MAX, CONNECTIONS_SHRUNK
from perdure.server.http.asgi import Application
from perdure.server.settings import HttpLimits


class Peer(Protocol):
    """What is known here of a connection."""

    deadline: float
    is_known: bool
    """Whether it had a request answered that passed the guard."""

    @property
    def waits_since(self) -> float | None:
        """When it began to wait for a request; None while it does anything else."""
        ...

    def give_way(self) -> None:
        """End at once for another connection; it waits for a request."""
        ...

    def begin_shutdown(self) -> None: ...
    def expire(self) -> None: ...
    def abort(self) -> None: ...


class Connections:
    """What the connections of one server share."""

    def __init__(self, app: Application, limits: HttpLimits) -> None:
        self.app = app
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.date = b""
        self.closing = False
        self.open: set[Peer] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.empty = asyncio.Event()
        """Set while there is no connection."""
        self.empty.set()
        self._leaving: dict[Peer, None] = {}
        """Refused or closed for another, in this order; each still has a descriptor."""
        self._unsent: dict[Peer, int] = {}
        self._unsent_bytes = 0
        self._count_max = limits.connections_max
        """Below the limit while the system has no descriptors for that many."""

    def admit(self, peer: Peer) -> bool:
        """Count a new connection; False if it must be refused. It calls `forget` in the end."""
        self.open.add(peer)
        self.empty.clear()
        if self._count <= self._count_max or self._make_room(peer):
            return True
        self._leave(peer)
        return False

    def shrink(self) -> None:
        """Have fewer connections for a while: the system has no descriptor for another one."""
        self._count_max = max(1, min(self._count_max, self._count) - CONNECTIONS_SHRUNK)
        while self._count > self._count_max and self._make_room(None):
            pass

    def relax(self) -> None:
        """Allow one more connection than now, up to the limit; called every second or so."""
        self._count_max = min(self._count_max + 1, self.limits.connections_max)

    @property
    def _count(self) -> int:
        return len(self.open) - len(self._leaving)

    def _make_room(self, newest: Peer | None) -> bool:
        """Close a connection that waits for a request, if there is one beside `newest`."""
        waiting = [
            (each.is_known, since, each)
            for each in self.open
            if each is not newest
            and each not in self._leaving
            and (since := each.waits_since) is not None
        ]
        if not waiting:
            return False
        _, _, oldest = min(waiting, key=lambda item: item[:2])
        self._leave(oldest)
        oldest.give_way()
        return True

    def note_unsent(self, peer: Peer, size: int) -> None:
        """Remember how many bytes a connection holds that its client has not read."""
        self._unsent_bytes += size - self._unsent.pop(peer, 0)
        if not size:
            return
        self._unsent[peer] = size
        if self._unsent_bytes > self.limits.unsent_bytes_max:
            largest = max(self._unsent, key=self._unsent.__getitem__)
            self._unsent_bytes -= self._unsent.pop(largest)
            largest.abort()

    def forget(self, peer: Peer) -> None:
        """Remove a connection that is closed."""
        self.open.discard(peer)
        self._leaving.pop(peer, None)
        self.note_unsent(peer, 0)
        if not self.open:
            self.empty.set()

    def _leave(self, peer: Peer) -> None:
        if len(self._leaving) >= CONNECTIONS_LEAVING_MAX:
            oldest = next(iter(self._leaving))
            # To the end: it counts until its descriptor is closed, and need not be ended twice.
            self._leaving[oldest] = self._leaving.pop(oldest)
            oldest.abort()
        self._leaving[peer] = None
