"""Checker of compactions: they do not repeat, and none contains what a revert took away."""

from collections.abc import Iterator
from typing import Final

from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session import event as events
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.ledger import LoggedEvent

_IN_A_ROW_MAX: Final = 2
"""One before a request, and one after it was refused as too large."""


class CompactionsEndWell:
    """At most two automatic compactions in a row; each ends once, and only after it has begun."""

    promise = "S36"

    def __init__(self) -> None:
        self._in_a_row: dict[SessionID, int] = {}
        self._begun: dict[SessionID, MessageID] = {}
        """The one that may end next."""

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            yield from self._take(item)

    def _take(self, item: LoggedEvent) -> Iterator[str]:
        session_id = item.session_id
        match item.event:
            case events.CompactionStarted(message_id=id, reason=reason):
                self._begun[session_id] = id
                if reason == "auto":
                    self._in_a_row[session_id] = self._in_a_row.get(session_id, 0) + 1
                if self._in_a_row.get(session_id, 0) > _IN_A_ROW_MAX:
                    yield f"{session_id} is compacted again and again, and nothing comes of it"
            case events.CompactionEnded(message_id=id):
                if self._begun.pop(session_id, None) != id:
                    yield f"compaction {id} of {session_id} ended twice, too late or unbegun"
            case events.RevertCommitted():
                # What was being condensed is no longer what was said.
                self._begun.pop(session_id, None)
                self._in_a_row.pop(session_id, None)
            case events.StepStarted() | events.PromptPromoted() | events.Retried():
                self._in_a_row.pop(session_id, None)
            case _:
                pass
