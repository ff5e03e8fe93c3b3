"""Finds from the log which messages a revert took away: those after its boundary.

Each checker that remembers messages, prompts or steps keeps one of these and feeds it every event.
"""

from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.harness.checkers.ledger import LoggedEvent

_BRING_MESSAGES = (
    events.PromptPromoted,
    events.ContextUpdated,
    events.SyntheticAdded,
    events.AgentSwitched,
    events.ModelSwitched,
    events.CompactionEnded,
)


class Reverted:
    def __init__(self) -> None:
        self._created: dict[SessionID, dict[MessageID, Seq]] = {}
        self.messages: set[MessageID] = set()
        """Those that are gone."""

    def boundary(self, item: LoggedEvent) -> Seq | None:
        """The sequence after which this event took everything away, if it did."""
        created = self._created.setdefault(item.session_id, {})
        if not isinstance(item.event, events.RevertCommitted):
            message_id = _brought(item.event)
            if message_id is not None:
                created[message_id] = item.seq
                self.messages.discard(message_id)
            return None
        boundary = created.get(item.event.message_id)
        if boundary is not None:
            gone = {message for message, seq in created.items() if seq > boundary}
            self.messages |= gone
            for message in gone:
                del created[message]
        return boundary


def _brought(event: SessionEvent) -> MessageID | None:
    """The message that an event brings into the transcript."""
    if isinstance(event, events.StepStarted):
        return event.assistant_message_id
    return event.message_id if isinstance(event, _BRING_MESSAGES) else None
