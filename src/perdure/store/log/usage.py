"""Reads the usage of a Session from its log: steps, and what was spent on titles and summaries."""

from typing import Final

from perdure.core.session.usage import UsageEvent
from perdure.ports import Transaction
from perdure.schema import manifest
from perdure.schema.ids import SessionID
from perdure.schema.session.event import Spent, StepEnded, StepStarted
from perdure.store.tables import row_checks

_STARTED, _ENDED, _SPENT = (
    manifest.BY_SHAPE[shape].stored for shape in (StepStarted, StepEnded, Spent)
)
_SELECT: Final = """
    SELECT seq, type, data FROM event
    WHERE session_id = :id AND type IN (:started, :ended, :spent) ORDER BY seq
"""


async def load_usage_events(tx: Transaction, session_id: SessionID) -> list[UsageEvent]:
    """Load the Session's events that tell of a request, in order."""
    rows = await tx.fetch(
        _SELECT, {"id": session_id, "started": _STARTED, "ended": _ENDED, "spent": _SPENT}
    )
    found: list[UsageEvent] = []
    for seq, stored, data in rows:
        assert isinstance(seq, int)
        event = row_checks.decode_event(stored, data, session_id, seq=seq)
        assert isinstance(event, UsageEvent)
        found.append(event)
    return found


async def count_turns(tx: Transaction, session_id: SessionID) -> int:
    """Count the steps that ended with an answer; failed and refused steps do not count."""
    rows = await tx.fetch(
        "SELECT count(*) FROM event WHERE session_id = :id AND type = :ended",
        {"id": session_id, "ended": _ENDED},
    )
    counted = rows[0][0]
    assert isinstance(counted, int)
    return counted
