"""LocationRegistry: the Locations that are open, one Location for each ref.

A Location opens when it is first asked for and closes after an hour in which nobody asked. One
that is held, or where somebody waits for a person's word, is not idle. Refs with equal contents
are the same Location; a trailing slash makes no difference. Whoever asks gets the services under
the configuration of now, and keeps them for as long as it holds them.

Invariant: as long as a Location is held or waited in, everyone who asks gets the same one: the
same services while the configuration stays, and always the same people waiting.
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
from perdure.location.factory import LocationHost
from perdure.location.location import Location
from perdure.schema import ids
from perdure.schema.errors import InvalidRequestError
from perdure.schema.location import LocationInfo, LocationRef

_SHOWN_CHARS_MAX: Final = 200


class _Open:
    """An open Location, and who uses it."""

    def __init__(self, opened: Location) -> None:
        self.services = opened
        self.used_at = 0.0
        self.holders = 0
        self._outdated: list[Location] = []
        """What turns that began before a change may still be using."""

    @property
    def idle(self) -> bool:
        here = self.services
        waiting = here.permissions.waiting or here.questions.waiting
        return self.holders == 0 and not waiting and not here.terminals.running

    def refresh(self, host: LocationHost) -> None:
        """Look whether the configuration changed."""
        now = factory.refreshed(self.services, host)
        if now is not self.services:
            self._outdated.append(self.services)
            self.services = now
            self._withdraw()

    def release(self) -> None:
        self.holders -= 1
        self._withdraw()

    def close(self) -> None:
        self.holders = 0
        self._withdraw()
        self.services.close()

    def _withdraw(self) -> None:
        while self._outdated and self.holders == 0:
            self._outdated.pop().tools.close()


def _loop_seconds() -> float:
    # The loop's clock only goes forward; the wall clock may jump an hour.
    return asyncio.get_running_loop().time()


class LocationRegistry:
    def __init__(self, host: LocationHost, *, seconds: Callable[[], float] = _loop_seconds) -> None:
        self._host = host
        self._seconds = seconds
        # In the order of their last use, the longest unused first.
        self._open: dict[LocationRef, _Open] = {}
        self._opening: dict[LocationRef, asyncio.Lock] = {}

    async def get(self, ref: LocationRef) -> Location:
        """The Location that `ref` names; raises InvalidRequestError when it cannot be one."""
        return (await self._used(_normal(ref))).services

    async def info(self, ref: LocationRef) -> LocationInfo:
        """Where the Location is and which project it is of. Its configuration is not looked at."""
        return await (await self._used(_normal(ref), look=False)).services.info()

    def if_open(self, ref: LocationRef) -> Location | None:
        """The Location when it is open. Looking opens nothing and does not count as use."""
        entry = self._open.get(_normal(ref))
        return None if entry is None else entry.services

    @asynccontextmanager
    async def hold(self, ref: LocationRef) -> AsyncGenerator[Location]:
        """As `get`; the Location stays open at least until the scope is left."""
        entry = await self._used(_normal(ref))
        entry.holders += 1
        try:
            yield entry.services
        finally:
            entry.release()
            entry.used_at = self._seconds()

    def close(self) -> None:
        """Close every Location: whoever waits for a person is declined."""
        while self._open:
            _, entry = self._open.popitem()
            entry.close()

    async def _used(self, ref: LocationRef, *, look: bool = True) -> _Open:
        """`look`: whether the configuration changed, which costs a stat for each of its files."""
        entry = self._open.get(ref)
        if entry is None:
            entry = await self._opened(ref)
        elif look:
            entry.refresh(self._host)
        entry.used_at = self._seconds()
        self._open.pop(ref, None)
        self._open[ref] = entry
        self._expire(entry.used_at)
        return entry

    async def _opened(self, ref: LocationRef) -> _Open:
        # Those who come first together wait for one opening. A cancelled opener leaves the lock
        # to the next, who then opens.
        lock = self._opening.setdefault(ref, asyncio.Lock())
        async with lock:
            entry = self._open.get(ref)
            if entry is None:
                # On a thread: the first look at a directory may wait for a disk or a network.
                opened = await asyncio.to_thread(_open_checked, ref, self._host)
                entry = self._open[ref] = _Open(opened)
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


def _normal(ref: LocationRef) -> LocationRef:
    workspace = ref.workspace_id
    if workspace and not ids.well_formed("wrk", workspace):
        raise _refused(f"{workspace!r} is not a workspace id")
    trimmed = ref.directory.rstrip("/") or ref.directory[:1]
    return ref if trimmed == ref.directory else structs.replace(ref, directory=trimmed)


def _open_checked(ref: LocationRef, host: LocationHost) -> Location:
    _check(ref.directory)
    return factory.open_location(ref, host)


def _check(directory: str) -> None:
    shown = repr(directory[:_SHOWN_CHARS_MAX])
    if not os.path.isabs(directory):
        raise _refused(f"{shown} is not an absolute path")
    try:
        status = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _refused(f"{shown} does not exist") from error
    except (OSError, ValueError) as error:
        # A name too long, a loop of links, a null character, no right to look.
        raise _refused(f"{shown} cannot be opened") from error
    if not stat.S_ISDIR(status.st_mode):
        raise _refused(f"{shown} is not a directory")


def _refused(reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Location cannot be used: {reason}", field="location")
