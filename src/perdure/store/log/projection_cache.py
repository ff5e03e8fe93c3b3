"""What the newest appends left of the projections, so that the next ones need not read it again.

Projections are folds of the log: after the same event they are the same. So an entry counts only
while the event that it was made with is the last one of its Session.
"""

from typing import Final

from perdure.schema.ids import EventID, SessionID
from perdure.store.log.projector import NOTHING_PROJECTED, Projected

_SESSIONS_MAX: Final = 64


class ProjectionCache:
    def __init__(self) -> None:
        self._kept: dict[SessionID, tuple[EventID, Projected]] = {}
        """The newest is last."""

    def get(self, session_id: SessionID, last_event: str) -> Projected:
        """What is known of a Session whose log ends with `last_event`."""
        kept = self._kept.get(session_id)
        return NOTHING_PROJECTED if kept is None or kept[0] != last_event else kept[1]

    def keep(self, session_id: SessionID, last_event: EventID, projected: Projected) -> None:
        """Keep what an append left, after its commit."""
        self._kept.pop(session_id, None)
        if len(self._kept) >= _SESSIONS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[session_id] = last_event, projected
