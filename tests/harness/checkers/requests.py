"""Checkers of what models and readers get: context, a stable prefix, the suffix of the log."""

import re
from collections.abc import Iterator
from typing import Final

from perdure.core.context import system_context
from perdure.core.request import history_to_llm
from perdure.core.session import history
from perdure.llm.message import LLMMessage
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.ledger import LoggedEvent
from tests.harness.checkers.witness import Cut, Request


class SnapshotEqualsTold:
    """The Context Snapshot is what the baseline and the messages after it told, no more."""

    promise = "S30"
    _TOLD: Final = {
        "core/date": re.compile(r"(?:Today is|The date is now) (.+)\."),
        "core/environment": re.compile(r"(<env>\n.*?\n</env>)", re.DOTALL),
        "core/instructions": re.compile(
            r"Instructions from .*:\n(.+)|There are no (instruction files) any more"
        ),
        "core/model": re.compile(
            r"You are the model (.+?)(?: from now on)?\.|Which (model) you are is not known"
        ),
    }
    """How each source is told: the value, or in the second group that there is none any more."""

    def __init__(self) -> None:
        self._updates: dict[SessionID, list[tuple[Seq, str]]] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            if isinstance(item.event, events.ContextUpdated):
                told = self._updates.setdefault(item.session_id, [])
                told.append((item.seq, item.event.text))
        for session_id in dict.fromkeys(item.session_id for item in seen.fresh):
            epoch = seen.clients.machine.ledger.epoch(session_id)
            if epoch is None:
                continue
            later = self._updates.get(session_id, [])
            texts = [epoch.baseline, *(text for seq, text in later if seq > epoch.baseline_seq)]
            snapshot = system_context.decode_snapshot(epoch.snapshot)
            for key, pattern in self._TOLD.items():
                told = [found for text in texts for found in pattern.finditer(text)]
                if _noted(snapshot, key) != (told[-1][1] if told else None):
                    yield f"{session_id} compares {key} with a value it never told"


class PrefixIsStable:
    """Within an epoch each request begins with the one before."""

    promise = "P7"

    def __init__(self) -> None:
        self._looked = 0
        self._last: dict[SessionID, Request] = {}
        self._baselines: dict[tuple[SessionID, Cut], str] = {}
        self._switched: set[SessionID] = set()
        """Whose next request is another agent's, who may have other tools."""
        self._omitted: dict[SessionID, set[MessageID]] = {}
        """Messages of which something was pruned, excluded or restored."""

    def check(self, seen: Seen) -> Iterator[str]:
        requests = seen.clients.machine.witness.requests
        self._switched.update(
            item.session_id for item in seen.fresh if isinstance(item.event, events.AgentSwitched)
        )
        for item in seen.fresh:
            if (changed := _omitted_by(item.event)) is not None:
                self._omitted.setdefault(item.session_id, set()).add(changed)
        for request in requests[self._looked :]:
            epoch = (request.session_id, request.cut)
            if self._baselines.setdefault(epoch, request.system[-1]) != request.system[-1]:
                yield f"{request.session_id}: another baseline in the same epoch"
            before = self._last.get(request.session_id)
            if before is not None and (before.model, before.cut) == (request.model, request.cut):
                stable = self._stable(seen, request, before) if _same_form(request, before) else 0
                if not _begins_with(request.messages, before.messages[:stable]):
                    yield f"{request.session_id}: the history that was sent has changed"
                same_offer = before.system == request.system and before.tools and request.tools
                same_agent = request.session_id not in self._switched
                if same_agent and same_offer and before.tools != request.tools:
                    yield f"{request.session_id}: the tools changed"
            self._last[request.session_id] = request
            self._switched.discard(request.session_id)
        self._looked = len(requests)

    def _stable(self, seen: Seen, request: Request, before: Request) -> int:
        """How many messages of the last request must be the same in this one.

        All of them, or those before the first message of which the model is sent less or more.
        """
        omitted = self._omitted.get(request.session_id)
        if not omitted:
            return len(before.messages)
        compaction, baseline = request.cut
        cut = history.Cut(compaction, baseline)
        count = 0
        for row in seen.clients.machine.ledger.messages(request.session_id):
            if row.id in omitted:
                return count
            if cut.shows(seq=row.seq, type=row.type):
                count += len(history_to_llm.lower(row.message(), request.model))
        # A revert took it away since.
        return 0


class ReadersSeeTheSuffix:
    """A reader with a cursor gets exactly what comes after it, once, in order."""

    promise = "P3"

    def __init__(self) -> None:
        self._log: dict[SessionID, dict[Seq, LoggedEvent]] = {}
        self._looked: dict[int, int] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            self._log.setdefault(item.session_id, {})[item.seq] = item
        for number, reader in enumerate(seen.clients.readers):
            log = self._log.get(reader.session_id, {})
            looked = self._looked.get(number, 0)
            expected = reader.frames[looked - 1][0] + 1 if looked else max(reader.start, 0) + 1
            for seq, wire in reader.frames[looked:]:
                if seq != expected:
                    yield f"reader {number} got {seq} where {expected} must be"
                    break
                # Told after this look's read of the log: it is compared the next time.
                if seq not in log:
                    break
                if not wire.endswith(b'"data":' + log[seq].data + b"}"):
                    yield f"reader {number} got something else as {seq} than the log holds"
                looked, expected = looked + 1, expected + 1
            self._looked[number] = looked
            if seen.at_rest and log and max(reader.cursor, 0) < max(log):
                yield f"reader {number} has {reader.cursor}, the log {max(log)}: a lost wake"


def _noted(snapshot: system_context.Snapshot, key: str) -> str | None:
    """The text that the snapshot holds for a source; None when there is no such source."""
    if key not in snapshot:
        return None
    value = snapshot[key].value
    return value if isinstance(value, str) else "".join(file["content"] for file in value)


def _begins_with(messages: tuple[LLMMessage, ...], prefix: tuple[LLMMessage, ...]) -> bool:
    return messages[: len(prefix)] == prefix


def _omitted_by(event: SessionEvent) -> MessageID | None:
    """The message of which the model is sent less or more from this event on."""
    match event:
        case events.ToolPruned(assistant_message_id=id):
            return id
        case events.MessageExcluded(message_id=id) | events.MessageRestored(message_id=id):
            return id
        case _:
            return None


def _same_form(request: Request, before: Request) -> bool:
    """Whether the same answers were sent without native parts, of those that both sent."""
    ends = (one.plain_until for one in (request, before))
    low, high = sorted(Seq(-1) if end is None else end for end in ends)
    return min(high, before.latest) <= low
