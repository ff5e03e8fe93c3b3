"""LocationRegistry: the open Locations, one for each ref.

A Location opens on first use and closes after an hour without use. One that is held, or has
pending requests or running terminals, stays open. Equal refs are the same Location; a trailing
slash makes no difference. A caller gets the Location under the current configuration and may keep
using it after a change.

Invariant: while a Location is held or has pending requests, all callers get the same one: the same
services while the configuration is unchanged, and always the same pending requests.
"""

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from msgspec import structs

from perdure.core import limits
from perdure.location import factory
from perdure.location.factory import SharedServices
from perdure.location.location import Location
from perdure.location.session_locations import SessionLocations
from perdure.schema import ids
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationInfo, LocationRef

_SHOWN_CHARS_MAX: Final = 200


class _OpenLocation:
    """An open Location, and its use."""

    def __init__(self, opened: Location) -> None:
        self.location = opened
        self.used_at = 0.0
        self.holders = 0
        self._outdated: list[Location] = []
        """Locations of an older configuration, which running turns may still use."""

    @property
    def idle(self) -> bool:
        here = self.location
        waiting = here.permissions.waiting or here.questions.waiting
        return self.holders == 0 and not waiting and not here.terminals.running

    def refresh(self, shared: SharedServices) -> None:
        """Replace the Location if the configuration changed."""
        current = factory.refresh_location(self.location, shared)
        if current is not self.location:
            self._outdated.append(self.location)
            self.location = current
            self._close_outdated()

    def release(self) -> None:
        self.holders -= 1
        self._close_outdated()

    def close(self) -> None:
        self.holders = 0
        self._close_outdated()
        self.location.close()

    def _close_outdated(self) -> None:
        while self._outdated and self.holders == 0:
            self._outdated.pop().tools.close()


def _loop_seconds() -> float:
    # The loop's clock is monotonic; the wall clock may jump.
    return asyncio.get_running_loop().time()


class LocationRegistry:
    def __init__(
        self, shared: SharedServices, *, seconds: Callable[[], float] = _loop_seconds
    ) -> None:
        self._shared = shared
        self._seconds = seconds
        self.sessions = SessionLocations(shared)
        # Least recently used first.
        self._open: dict[LocationRef, _OpenLocation] = {}
        self._opening: dict[LocationRef, asyncio.Lock] = {}

    async def get(self, ref: LocationRef) -> Location:
        """The Location that `ref` names, opened if need be. Raises InvalidRequestError."""
        return (await self._use(_normalize(ref))).location

    async def info(self, ref: LocationRef) -> LocationInfo:
        """The directory and project of a Location, without a check of its configuration."""
        entry = await self._use(_normalize(ref), check_config=False)
        return await entry.location.info()

    def get_open(self, ref: LocationRef) -> Location | None:
        """The Location if it is open. Opens nothing, and does not count as use."""
        entry = self._open.get(_normalize(ref))
        return None if entry is None else entry.location

    def list_open(self) -> tuple[Location, ...]:
        return tuple(entry.location for entry in self._open.values())

    def refresh_open(self) -> tuple[Location, ...]:
        """The open Locations under the current configuration. Does not count as use."""
        for entry in tuple(self._open.values()):
            entry.refresh(self._shared)
        return self.list_open()

    @asynccontextmanager
    async def hold(
        self, ref: LocationRef, *, session: SessionID | None = None
    ) -> AsyncGenerator[Location]:
        """As `get`; the Location stays open at least until the scope ends.

        With `session` it is as that Session has it, with MCP servers of its own.
        """
        entry = await self._use(_normalize(ref))
        entry.holders += 1
        try:
            if session is None:
                yield entry.location
            else:
                with self.sessions.using(session, entry.location) as location:
                    yield location
        finally:
            entry.release()
            entry.used_at = self._seconds()

    def close(self) -> None:
        """Close every Location; pending requests are declined."""
        self.sessions.close_all()
        while self._open:
            _, entry = self._open.popitem()
            entry.close()

    async def _use(self, ref: LocationRef, *, check_config: bool = True) -> _OpenLocation:
        """`check_config` costs a stat of each configuration file."""
        entry = self._open.get(ref)
        if entry is None:
            entry = await self._open_once(ref)
        elif check_config:
            entry.refresh(self._shared)
        entry.used_at = self._seconds()
        self._open.pop(ref, None)
        self._open[ref] = entry
        self._expire(entry.used_at)
        return entry

    async def _open_once(self, ref: LocationRef) -> _OpenLocation:
        # Concurrent callers wait for one opening. When the opening caller is cancelled, the next
        # one gets the lock and opens.
        lock = self._opening.setdefault(ref, asyncio.Lock())
        async with lock:
            entry = self._open.get(ref)
            if entry is None:
                # On a thread: the first access to a directory may wait for a disk or a network.
                opened = await asyncio.to_thread(_open_checked, ref, self._shared)
                entry = self._open[ref] = _OpenLocation(opened)
        if self._opening.get(ref) is lock and not lock.locked():
            del self._opening[ref]
        return entry

    def _expire(self, now: float) -> None:
        excess = len(self._open) - limits.LOCATIONS_OPEN_MAX
        for ref, entry in tuple(self._open.items()):
            if excess <= 0 and now - entry.used_at < limits.LOCATION_IDLE_SECONDS_MAX:
                return
            if entry.idle and entry.used_at != now:
                del self._open[ref]
                entry.close()
                excess -= 1


def _normalize(ref: LocationRef) -> LocationRef:
    workspace = ref.workspace_id
    if workspace and not ids.well_formed("wrk", workspace):
        raise _refused(f"{workspace!r} is not a workspace id")
    trimmed = ref.directory.rstrip("/") or ref.directory[:1]
    return ref if trimmed == ref.directory else structs.replace(ref, directory=trimmed)


def _open_checked(ref: LocationRef, shared: SharedServices) -> Location:
    _check(ref.directory)
    try:
        return factory.open_location(ref, shared)
    except OSError as error:
        display = repr(ref.directory[:_SHOWN_CHARS_MAX])
        raise _refused(f"{display} cannot be opened: {error}") from error


def _check(directory: str) -> None:
    display = repr(directory[:_SHOWN_CHARS_MAX])
    if not os.path.isabs(directory):
        raise _refused(f"{display} is not an absolute path")
    try:
        status = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _refused(f"{display} does not exist") from error
    except (OSError, ValueError) as error:
        # The name is too long, a link loops, a NUL character, no permission.
        raise _refused(f"{display} cannot be opened") from error
    if not stat.S_ISDIR(status.st_mode):
        raise _refused(f"{display} is not a directory")


def _refused(reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Location cannot be used: {reason}", field="location")
