"""A cache of Sessions that exist, with their Locations: nearly every request needs one.

A Session's Location changes only by an event; those of this process update the cache. Commits of
another process clear it. The number of entries is bounded; the oldest are dropped first.
"""

from typing import Final

from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import Deleted, Moved
from perdure.store.log.event_store import EventStore, StoredEvent

_SESSIONS_MAX: Final = 10_000


class SessionLocations:
    def __init__(self, store: EventStore) -> None:
        self._locations: dict[SessionID, LocationRef] = {}
        store.listen(self._on_committed)

    def location(self, session_id: SessionID) -> LocationRef | None:
        return self._locations.get(session_id)

    def add(self, session_id: SessionID, location: LocationRef) -> None:
        while len(self._locations) >= _SESSIONS_MAX:
            del self._locations[next(iter(self._locations))]
        self._locations[session_id] = location

    def clear(self) -> None:
        self._locations.clear()

    def _on_committed(
        self,
        session_id: SessionID,
        events: tuple[StoredEvent, ...],
        location: LocationRef | None,
    ) -> None:
        for stored in events:
            if isinstance(stored.event, Moved):
                self.add(session_id, stored.event.location)
            elif isinstance(stored.event, Deleted):
                self._locations.pop(session_id, None)
