"""What must hold after every step of a simulation, each promise one checker.

A new capability adds its promises here: a class with `check`, given everything that was seen
since the last look, and its name in `CHECKERS`. A checker keeps what it needs to know between
looks and reads nothing but the log, the rows and the witness; it never trusts the runtime.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Protocol

from perdure.core import system_context
from perdure.llm.message import LLMMessage
from perdure.schema import session_event as events
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.message import AssistantMessage, TextPart, ToolPart, UserMessage
from perdure.schema.session_event import SessionEvent
from perdure.schema.tool import CompletedState, ErrorState
from perdure.schema.value import Value
from perdure.store import migrate, projector
from perdure.store.database import sqlite_connection
from perdure.store.database.sqlite import SqliteTransaction
from perdure.testing.ledger import PROJECTIONS, LoggedEvent
from perdure.testing.never_waiting import never_waiting
from perdure.testing.simulated_clients import Clients
from perdure.testing.witness import CallKey, Request


_SHOWN_CHARS_MAX: Final = 600


class Seen(Value):
    """What a checker looks at."""

    clients: Clients
    fresh: list[LoggedEvent]
    """Committed since the last look."""
    at_rest: bool
    """Nothing runs and nothing is about to."""


class Checker(Protocol):
    promise: str

    def check(self, seen: Seen) -> Iterator[str]:
        """What is wrong, in words; nothing when all is well."""
        ...


class GaplessSequence:
    """From 0, without a gap, and never changed once it was read."""

    promise = "P2"

    def __init__(self) -> None:
        self._next: Counter[SessionID] = Counter()
        self._bytes: Counter[SessionID] = Counter()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            if item.seq != self._next[item.session_id]:
                yield f"{item.session_id} has {item.seq} after {self._next[item.session_id] - 1}"
            self._next[item.session_id] = item.seq + 1
            self._bytes[item.session_id] += len(item.data)
        for session_id, count, size in seen.clients.machine.ledger.fetch(
            "SELECT session_id, count(*), sum(length(data)) FROM event GROUP BY session_id"
        ):
            known = SessionID(str(session_id))
            if (count, size) != (self._next[known], self._bytes[known]):
                yield f"{known}: the log changed behind its readers"


class ProjectionsEqualFold:
    """The rows are what folding the log, one event at a time, makes of it."""

    promise = "P5"

    def __init__(self) -> None:
        self._connection = sqlite_connection.opened(":memory:")
        for number in range(1, migrate.SCHEMA_VERSION + 1):
            self._connection.execute(migrate.packaged_sql(number))
        self._tx = SqliteTransaction(self._connection, ":memory:")

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            never_waiting(projector.project(self._tx, item.session_id, item.seq, [item.event]))
        for session_id in dict.fromkeys(item.session_id for item in seen.fresh):
            for table in PROJECTIONS:
                stored = seen.clients.machine.ledger.projection(table, session_id)
                folded = list(never_waiting(self._tx.fetch(PROJECTIONS[table], {"id": session_id})))
                if stored != folded:
                    different = [
                        pair for pair in zip(stored, folded, strict=False) if pair[0] != pair[1]
                    ]
                    yield (
                        f"{table} of {session_id} has {len(stored)} rows, the fold {len(folded)};"
                        f" the first that differ: {str(different[:1])[:_SHOWN_CHARS_MAX]}"
                    )


class MessagesTellTheLog:
    """The transcript says what the log says, by a reading of the log that is not ours."""

    promise = "P5"

    def __init__(self) -> None:
        self._texts: dict[MessageID, dict[str, str]] = {}
        self._calls: dict[MessageID, dict[str, str]] = {}
        self._prompts: dict[MessageID, tuple[Seq, str]] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            self._read(item.seq, item.event)
        for session_id in dict.fromkeys(item.session_id for item in seen.fresh):
            shown: set[MessageID] = set()
            for row in seen.clients.machine.ledger.messages(session_id):
                message = row.message()
                shown.add(row.id)
                if isinstance(message, UserMessage):
                    if self._prompts.get(row.id) != (row.seq, message.text):
                        yield f"user message {row.id} is not what was promoted"
                elif isinstance(message, AssistantMessage):
                    yield from self._check_assistant(message)
            said = {*self._prompts, *self._texts}
            if missing := {id for id in said if id in self._of(session_id, seen)} - shown:
                yield f"messages {sorted(missing)} are in the log and not in the transcript"

    def _of(self, session_id: SessionID, seen: Seen) -> set[MessageID]:
        return {
            item.event.message_id
            if isinstance(item.event, events.PromptPromoted)
            else item.event.assistant_message_id
            for item in seen.fresh
            if item.session_id == session_id
            and isinstance(item.event, events.PromptPromoted | events.StepStarted)
        }

    def _read(self, seq: Seq, event: SessionEvent) -> None:
        match event:
            case events.PromptPromoted(message_id=id, prompt=prompt):
                self._prompts[id] = (seq, prompt.text)
            case events.StepStarted(assistant_message_id=id):
                self._texts[id], self._calls[id] = {}, {}
            case events.TextEnded(assistant_message_id=id, text_id=part, text=text):
                self._texts[id][part] = text
            case events.ToolSucceeded(assistant_message_id=id, call_id=call):
                self._calls[id].setdefault(call, "completed")
            case events.ToolFailed(assistant_message_id=id, call_id=call):
                self._calls[id].setdefault(call, "error")
            case _:
                pass

    def _check_assistant(self, message: AssistantMessage) -> Iterator[str]:
        texts = {part.id: part.text for part in message.content if isinstance(part, TextPart)}
        said = self._texts[message.id]
        if any(texts.get(part) != text for part, text in said.items()):
            yield f"message {message.id} does not say what was said"
        settled = {
            part.id: "completed" if isinstance(part.state, CompletedState) else "error"
            for part in message.content
            if isinstance(part, ToolPart) and isinstance(part.state, CompletedState | ErrorState)
        }
        if settled != self._calls[message.id]:
            yield f"message {message.id} shows calls {settled}, settled {self._calls[message.id]}"


class PromptsArePromotedOnce:
    """A prompt runs at most once and, at rest, exactly once. A receipt is a record."""

    promise = "P1"

    def __init__(self) -> None:
        self._pending: dict[MessageID, LoggedEvent] = {}
        self._admitted: dict[MessageID, LoggedEvent] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            match item.event:
                case events.PromptAdmitted(message_id=id):
                    if id in self._admitted:
                        yield f"{id} was admitted twice"
                    self._admitted[id] = self._pending[id] = item
                case events.PromptPromoted(message_id=id, prompt=prompt):
                    admitted = self._pending.pop(id, None)
                    if admitted is None:
                        yield f"{id} was promoted twice, or never admitted"
                    elif _prompt_of(admitted) != prompt:
                        yield f"{id} was promoted with another body"
                case _:
                    pass
        yield from self._check_receipts(seen)
        if seen.at_rest:
            yield from self._check_rest(seen)

    def pending(self) -> list[MessageID]:
        return list(self._pending)

    def _check_receipts(self, seen: Seen) -> Iterator[str]:
        for prompt in seen.clients.prompts.values():
            if prompt.receipt is None:
                continue
            admitted = self._admitted.get(prompt.id)
            if admitted is None or admitted.seq != prompt.receipt.admitted_seq:
                yield f"{prompt.id} has a receipt and no admission at its sequence"

    def _check_rest(self, seen: Seen) -> Iterator[str]:
        for id, admitted in self._pending.items():
            excused = seen.clients.machine.witness.excused.get(admitted.session_id, Seq(-1))
            if seen.clients.prompts[id].woken and admitted.seq > excused:
                yield f"{id} of {admitted.session_id} waits although nothing runs: a lost wake"


class CallsAreSettledOnce:
    """One settlement for each call, inside its step; what succeeded is recorded as a success."""

    promise = "P4"

    def __init__(self) -> None:
        self._open: dict[CallKey, SessionID] = {}
        self._settled: dict[CallKey, str] = {}
        self._steps: dict[MessageID, SessionID] = {}
        self._ended: set[MessageID] = set()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            event = item.event
            if isinstance(event, events.StepFact):
                if event.assistant_message_id in self._ended:
                    yield f"{type(event).__name__} after the end of {event.assistant_message_id}"
                yield from self._take(item.session_id, event)
        yield from self._check_successes(seen)
        if seen.at_rest:
            yield from self._check_rest()

    def _take(self, session_id: SessionID, event: events.StepFact) -> Iterator[str]:
        step = event.assistant_message_id
        match event:
            case events.StepStarted():
                self._steps[step] = session_id
            case events.StepEnded() | events.StepFailed():
                self._ended.add(step)
                del self._steps[step]
                if left := [key for key in self._open if key[0] == step]:
                    yield f"step {step} ended with open calls {left}"
            case events.ToolInputStarted(call_id=call):
                self._open[step, call] = session_id
            case events.ToolSucceeded(call_id=call) | events.ToolFailed(call_id=call):
                if self._open.pop((step, call), None) is None:
                    yield f"call {call} of {step} was settled twice, or never made"
                self._settled[step, call] = type(event).__name__
            case _:
                pass

    def _check_successes(self, seen: Seen) -> Iterator[str]:
        for key, effect in seen.clients.machine.witness.effects.items():
            if effect.finished and self._settled.get(key) == "ToolFailed":
                alive = effect.process in {p.name for p in seen.clients.machine.processes}
                if alive:
                    yield f"call {key} came to a good end and was recorded as failed"

    def _check_rest(self) -> Iterator[str]:
        for step, session_id in self._steps.items():
            yield f"step {step} of {session_id} is open although nothing runs"
        for (step, call), session_id in self._open.items():
            yield f"call {call} of {step} in {session_id} is open although nothing runs"


class PromptsAreAnswered:
    """At rest the last word is the model's, or a failure for all to see."""

    promise = "P1"

    def __init__(self) -> None:
        self._unanswered: dict[SessionID, MessageID] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            match item.event:
                case events.PromptPromoted(message_id=id):
                    self._unanswered[item.session_id] = id
                case events.StepStarted():
                    self._unanswered.pop(item.session_id, None)
                case _:
                    pass
        if seen.at_rest:
            for session_id, id in self._unanswered.items():
                yield f"{id} of {session_id} was promoted, and nothing came of it"


class SnapshotEqualsTold:
    """The Context Snapshot is what the baseline and the messages after it told, no more."""

    promise = "S30"
    _TOLD: Final = {
        "core/date": re.compile(r"(?:Today is|The date is now) (.+)\."),
        "core/environment": re.compile(r"(<env>\n.*?\n</env>)", re.DOTALL),
    }

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
                told = [found for text in texts for found in pattern.findall(text)]
                if snapshot[key].value != told[-1]:
                    yield f"{session_id} compares {key} with a value it never told"


class PrefixIsStable:
    """Within an epoch each request begins with the one before."""

    promise = "P7"

    def __init__(self) -> None:
        self._looked = 0
        self._last: dict[SessionID, Request] = {}
        self._baselines: dict[SessionID, str] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        requests = seen.clients.machine.witness.requests
        for request in requests[self._looked :]:
            baseline = self._baselines.setdefault(request.session_id, request.system[-1])
            if request.system[-1] != baseline:
                yield f"{request.session_id}: another baseline in the same epoch"
            before = self._last.get(request.session_id)
            if before is not None and before.model == request.model:
                if not _begins_with(request.messages, before.messages):
                    yield f"{request.session_id}: the history that was sent has changed"
                same_offer = before.system == request.system and before.tools and request.tools
                if same_offer and before.tools != request.tools:
                    yield f"{request.session_id}: the tools changed"
            self._last[request.session_id] = request
        self._looked = len(requests)


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


CHECKERS: Final[tuple[type[Checker], ...]] = (
    GaplessSequence,
    ProjectionsEqualFold,
    MessagesTellTheLog,
    PromptsArePromotedOnce,
    CallsAreSettledOnce,
    PromptsAreAnswered,
    SnapshotEqualsTold,
    PrefixIsStable,
    ReadersSeeTheSuffix,
)
"""Made anew for each simulation; asked after every step, in this order."""


def _prompt_of(item: LoggedEvent) -> object:
    assert isinstance(item.event, events.PromptAdmitted)
    return item.event.prompt


def _begins_with(messages: tuple[LLMMessage, ...], prefix: tuple[LLMMessage, ...]) -> bool:
    return messages[: len(prefix)] == prefix
