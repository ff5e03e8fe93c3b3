"""Checkers of compactions: they do not repeat, and none has what was reverted or excluded."""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

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


class ExcludedIsNotCondensed:
    """A checkpoint does not have the words of a prompt that is excluded when it is made."""

    promise = "S36"

    def __init__(self) -> None:
        self._prompts: dict[MessageID, str] = {}
        self._excluded: dict[SessionID, set[MessageID]] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            excluded = self._excluded.setdefault(item.session_id, set())
            match item.event:
                case events.PromptPromoted(message_id=id, prompt=prompt):
                    self._prompts[id] = prompt.text
                    # A revert took it away, and it was sent anew.
                    excluded.discard(id)
                case events.MessageExcluded(message_id=id, call_id=call) if call is UNSET:
                    excluded.add(id)
                case events.MessageRestored(message_id=id, call_id=call) if call is UNSET:
                    excluded.discard(id)
                case events.CompactionEnded():
                    words = {self._prompts[one] for one in excluded if one in self._prompts}
                    yield from _find_condensed(item.event, words)
                case _:
                    pass


def _find_condensed(checkpoint: events.CompactionEnded, excluded: set[str]) -> Iterator[str]:
    lines = {line.removeprefix("[User]: ") for line in checkpoint.recent.split("\n")}
    for text in sorted(excluded & (lines | set(checkpoint.directives or ()))):
        yield f"checkpoint {checkpoint.message_id} has the excluded words {text[:40]!r}"
