"""Terminals of Locations for clients, and one-time tickets to connect to one.

A ticket is valid once, for a minute, for one terminal of one Location. Only its digest is stored.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from perdure.core import limits
from perdure.location.registry import LocationRegistry
from perdure.location.workspace.terminals import Attachment
from perdure.schema.files.pty import PtyInfo, PtySize, PtyStart, PtyTicket
from perdure.schema.ids import PtyID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value

_TICKET_BYTES = 32


class Terminals:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(self, locations: LocationRegistry, entropy: Callable[[int], bytes]) -> None:
        self._locations = locations
        self._tickets = Tickets(entropy)

    async def list(self, ref: LocationRef) -> tuple[PtyInfo, ...]:
        return (await self._locations.get(ref)).terminals.list()

    async def directory(self, ref: LocationRef, cwd: str | None) -> str:
        return (await self._locations.get(ref)).terminals.directory(cwd)

    async def create(self, ref: LocationRef, start: PtyStart) -> PtyInfo:
        location = await self._locations.get(ref)
        return await location.terminals.create(start, shell=location.settings.shell)

    async def get(self, ref: LocationRef, id: PtyID) -> PtyInfo:
        return (await self._locations.get(ref)).terminals.get(id)

    async def update(
        self, ref: LocationRef, id: PtyID, *, title: str | None, size: PtySize | None
    ) -> PtyInfo:
        return (await self._locations.get(ref)).terminals.update(id, title=title, size=size)

    async def remove(self, ref: LocationRef, id: PtyID) -> None:
        await (await self._locations.get(ref)).terminals.remove(id)

    async def ticket(self, ref: LocationRef, id: PtyID) -> PtyTicket:
        location = await self._locations.get(ref)
        location.terminals.get(id)
        return self._tickets.issue(location.ref, id)

    async def redeem(self, ref: LocationRef, id: PtyID, ticket: str) -> bool:
        """Return whether the ticket is valid for this terminal. Redeeming uses it up."""
        location = self._locations.get_open(ref)
        return location is not None and self._tickets.redeem(location.ref, id, ticket)

    async def reader(
        self, ref: LocationRef, id: PtyID, cursor: int | None
    ) -> Callable[[], AbstractContextManager[Attachment]]:
        """Return what attaches a reader. Raises PtyNotFoundError for an unknown terminal."""
        terminals = (await self._locations.get(ref)).terminals
        terminals.get(id)
        return partial(terminals.attached, id, cursor)


class _Issued(Value):
    digest: bytes
    ref: LocationRef
    pty_id: PtyID
    ends_at: float


class Tickets:
    def __init__(
        self,
        entropy: Callable[[int], bytes],
        seconds: Callable[[], float] = lambda: asyncio.get_running_loop().time(),
    ) -> None:
        self._entropy = entropy
        self._seconds = seconds
        self._issued: dict[bytes, _Issued] = {}

    def issue(self, ref: LocationRef, pty_id: PtyID) -> PtyTicket:
        self._expire()
        ticket = self._entropy(_TICKET_BYTES).hex()
        digest = _digest(ticket)
        ends_at = self._seconds() + limits.PTY_TICKET_SECONDS
        self._issued[digest] = _Issued(digest, ref, pty_id, ends_at)
        while len(self._issued) > limits.PTY_TICKETS_MAX:
            del self._issued[next(iter(self._issued))]
        return PtyTicket(ticket=ticket, expires_in=limits.PTY_TICKET_SECONDS)

    def redeem(self, ref: LocationRef, pty_id: PtyID, ticket: str) -> bool:
        """Return whether it is valid for this terminal; it is used up in any case."""
        self._expire()
        digest = _digest(ticket)
        issued = self._issued.pop(digest, None)
        if issued is None or not hmac.compare_digest(issued.digest, digest):
            return False
        return (issued.ref, issued.pty_id) == (ref, pty_id)

    def _expire(self) -> None:
        now = self._seconds()
        while self._issued and next(iter(self._issued.values())).ends_at <= now:
            del self._issued[next(iter(self._issued))]


def _digest(ticket: str) -> bytes:
    # Tickets are looked up by digest, so the time of a lookup reveals nothing about them.
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
