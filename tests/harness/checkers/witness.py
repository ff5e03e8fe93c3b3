"""Observes what leaves the runtime: announced events, model requests, started tools.

Some promises hold at a moment and can be checked only then: an event is announced after its commit,
a request is the whole history, an effect follows the record of its call. They are checked here, as
it happens. What holds after every step is checked in the other modules.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from perdure.core.request import history_to_llm
from perdure.core.session import omission
from perdure.llm.error import Reason
from perdure.llm.message import LLMMessage, Segment, TextPart, ToolCallPart, ToolResultPart
from perdure.llm.request import LLMRequest
from perdure.runtime.turn.request import STEP_LIMIT
from perdure.schema import codec
from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage, ToolPart
from perdure.schema.session.tool import RunningState
from perdure.schema.value import State, Value
from perdure.store.log.event_store import StoredEvent
from perdure.store.tables.message_table import MessageRow
from perdure.tools.api.tool import ToolCallContext
from tests.harness.checkers import call_ids
from tests.harness.checkers.ledger import Ledger
from tests.harness.simulation.trace import Trace

T = TypeVar("T")

_NOTE: Final = LLMMessage("system", (TextPart(STEP_LIMIT),))
Cut = tuple[Seq | None, Seq | None]
_PART_KEYS: Final = ("assistantMessageID", "textID", "reasoningID", "callID")
CallKey = tuple[MessageID, ToolCallID]

_BY_CLIENTS = (
    events.SessionCreated,
    events.Forked,
    events.Renamed,
    events.Archived,
    events.Unarchived,
    events.PromptAdmitted,
    events.PromptRevised,
    events.PromptCancelled,
    events.InboxReordered,
    events.AgentSwitched,
    events.ModelSwitched,
    events.MessageExcluded,
    events.MessageRestored,
    events.RevertStaged,
    events.RevertCleared,
    events.RevertCommitted,
    # Of a compaction that found another process at work.
    events.CompactionReported,
)
"""Facts that anyone may append. All others are made by a run and need its lease."""


_ENDS_A_REQUEST = (
    events.StepFact,
    events.Retried,
    events.ModelSubstituted,
    events.CompactionStarted,
    events.RevertCommitted,
)
"""Facts after which what was sent before is answered, refused, given up or taken away."""


class Violation(Value):
    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.what}"


class Request(Value):
    """One question to a model, flattened for comparison."""

    process: str
    session_id: SessionID
    model: ModelRef
    system: tuple[str, ...]
    messages: tuple[LLMMessage, ...]
    tools: tuple[str, ...]
    cut: Cut
    """The epoch's baseline and the latest compaction: while both stay, the prefix stays."""
    plain_until: Seq | None
    """The answers up to here were sent without native parts; None if it was not the history."""
    latest: Seq
    """The end of the log."""


class Effect(State):
    """A tool that really ran, where, and whether it came to a good end."""

    process: str
    session_id: SessionID
    finished: bool = False
    died: bool = False
    """Whether its process was killed before it had come to an end."""


class Witness:
    def __init__(self, ledger: Ledger, trace: Trace, alive: Callable[[str], bool]) -> None:
        self._ledger = ledger
        self._alive = alive
        self._running: dict[SessionID, tuple[str, MessageID]] = {}
        self._trace = trace
        self.violations: list[Violation] = []
        self.requests: list[Request] = []
        self.effects: dict[CallKey, Effect] = {}
        self._awaited: list[asyncio.Future[Effect]] = []
        self._awaited_starts: list[asyncio.Future[Effect]] = []
        self._awaited_ends: list[asyncio.Future[SessionID]] = []
        self.stalls: dict[tuple[str, SessionID], int] = {}
        """Who waits for ever, until interrupted: how many of each run."""
        self._live_seqs: dict[tuple[str, str], int] = {}
        self._live_parts: set[tuple[str | None, ...]] = set()
        self._lowered: dict[tuple[bytes, ModelRef, bool], tuple[LLMMessage, ...]] = {}
        self._asked_at: dict[SessionID, Seq] = {}
        """The end of the log at the latest request."""
        self._unanswered: dict[SessionID, str] = {}
        """Who sent a request of which nothing has come back."""
        self._natives_refused: set[SessionID] = set()
        """Sessions of which a native part was refused: they may be sent without any."""
        self.excused: dict[SessionID, Seq] = {}
        """The sequence up to which a requested stop may have left prompts pending."""
        self.may_lack_context = False
        """Whether a Context Source may be unavailable, so that old epochs go on."""
        self._silent_about: str | None = None

    def accuse(self, promise: str, what: str) -> None:
        self.violations.append(Violation(promise, self._trace.neutral(what)))

    def excuse(self, session_id: SessionID) -> None:
        """A run was stopped by a person, a refusal or a simulated defect; so are its children."""
        for stopped in self._ledger.below(session_id):
            self.excused[stopped] = self._ledger.latest(stopped)

    @contextmanager
    def expecting_silence(self, subject: str) -> Generator[None]:
        """Within the scope no model may be told of a change that has these words."""
        self._silent_about = subject
        try:
            yield
        finally:
            self._silent_about = None

    def defect(self, session_id: SessionID) -> None:
        self._trace.say(f"  {session_id[4:16]} meets a defect")
        self.excuse(session_id)

    # ---- durable events, as one process tells of them -------------------------------------------

    def told(self, process: str, session_id: SessionID, stored: tuple[StoredEvent, ...]) -> None:
        """What one commit brought."""
        logged = self._ledger.event_ids(session_id, stored[0].seq, stored[-1].seq)
        for item in stored:
            self._trace.take_in(item.wire)
            name = type(item.event).__name__
            self._trace.say(f"  {process} {session_id[4:16]} {item.seq} {name}")
            if logged.get(item.seq) != item.id:
                self.accuse("P1", f"{name} {item.seq} was announced before its commit")
            if isinstance(item.event, _ENDS_A_REQUEST):
                self._unanswered.pop(session_id, None)
            self._follow_step(process, session_id, item.event)
            self._check_silence(item.event)
        for item in stored:
            if not isinstance(item.event, _BY_CLIENTS):
                self._check_lease(process, session_id, item.event)
                return

    def _follow_step(self, process: str, session_id: SessionID, event: SessionEvent) -> None:
        match event:
            case events.StepStarted(assistant_message_id=step):
                other, _ = self._running.get(session_id, (process, step))
                if other != process and self._alive(other):
                    self.accuse("P8", f"{process} and {other} run {session_id} at once")
                self._running[session_id] = (process, step)
            case events.StepEnded() | events.StepFailed():
                self._running.pop(session_id, None)
                _tell(self._awaited_ends, session_id)
            case _:
                pass

    def _check_lease(self, process: str, session_id: SessionID, event: SessionEvent) -> None:
        lease = self._ledger.lease(session_id)
        if lease is None or lease.process != process:
            holder = "nobody" if lease is None else lease.process
            what = f"{process} appended {type(event).__name__} to a session that {holder} runs"
            self.accuse("P8", what)

    def _check_silence(self, event: SessionEvent) -> None:
        hidden = self._silent_about
        if hidden is not None and isinstance(event, events.ContextUpdated) and hidden in event.text:
            self.accuse("S44", f"a model is told of {hidden}, which could not be looked at")

    # ---- the live stream ------------------------------------------------------------------------

    def live(self, process: str, data: bytes) -> None:
        """Facts in the order of the log; a fragment only after its part has begun."""
        event = codec.decode_any(data)
        name, said = str(event["type"]), event["data"]
        self._trace.take_in(data)
        if "durable" in event:
            place = event["durable"]
            last = self._live_seqs.get((process, place["aggregateID"]))
            if last is not None and place["seq"] <= last:
                self.accuse("P3", f"live {name} {place['seq']} in {process} follows {last}")
            self._live_seqs[process, place["aggregateID"]] = place["seq"]
        if name.endswith((".started", ".delta")) and "assistantMessageID" in said:
            part = (process, *(said.get(key) for key in _PART_KEYS))
            if name.endswith(".started"):
                self._live_parts.add(part)
            elif part not in self._live_parts:
                self.accuse("P3", f"a live {name} in {process} before its part began")

    # ---- requests -------------------------------------------------------------------------------

    def asked(self, process: str, request: LLMRequest) -> SessionID:
        session_id = SessionID(request.headers["x-session-id"])
        if not request.system:
            return self._asked_to_condense(process, session_id, request)
        messages = _without_note(request.segments)
        names = tuple(tool.name for tool in request.tools)
        cut = self._cut(session_id)
        plain_until = self._find_plain(session_id, request.model, cut, messages)
        seen = Request(
            process,
            session_id,
            request.model,
            request.system,
            messages,
            names,
            cut,
            plain_until,
            self._ledger.latest(session_id),
        )
        # What came before has been taken in with its events, and must be the same anyway.
        said = (process, session_id, request.model, cut, names, len(messages), messages[-3:])
        self._trace.take_in(codec.encode(said))
        self._trace.say(f"  {process} {session_id[4:16]} asks {request.model.id}")
        if not self._alive(process):
            # Taken for dead: it may still ask, of what it knows, and will not get to record it.
            return session_id
        self.requests.append(seen)
        self._check_sent_once(process, session_id)
        if plain_until is None:
            self.accuse("P7", f"{process} sent {session_id} something else than its history")
        self._asked_at[session_id] = self._ledger.latest(session_id)
        self._check_structure(seen)
        self._check_epoch(seen)
        return session_id

    def _check_sent_once(self, process: str, session_id: SessionID) -> None:
        if self._ledger.attempts().get(session_id) != "dispatched":
            self.accuse("P4", f"{process} asks for {session_id}, and no mark on disk says so")
        before = self._unanswered.get(session_id, process)
        if before != process:
            what = f"what {before} sent for {session_id} was sent again without a decision"
            self.accuse("P4", what)
        self._unanswered[session_id] = process

    def refused(self, session_id: SessionID, reason: Reason | None = None) -> None:
        """The provider refused: a retry is then no second request."""
        self._unanswered.pop(session_id, None)
        if reason == "native-part":
            self._natives_refused.add(session_id)

    def decided(self, session_id: SessionID) -> None:
        """A person decided that the request is sent again."""
        self._unanswered.pop(session_id, None)

    def _asked_to_condense(
        self, process: str, session_id: SessionID, request: LLMRequest
    ) -> SessionID:
        """A compaction's own question: no turn, and no part of any history."""
        self._trace.say(f"  {process} {session_id[4:16]} asks for a summary")
        if request.tools or len(request.segments) != 1:
            self.accuse("P7", f"a summary of {session_id} was asked for with more than its text")
        lease = self._ledger.lease(session_id)
        if self._alive(process) and (lease is None or lease.process != process):
            self.accuse("P8", f"{process} condenses {session_id} without its lease")
        return session_id

    def _cut(self, session_id: SessionID) -> Cut:
        epoch = self._ledger.epoch(session_id)
        compaction = self._ledger.compaction(session_id)
        return compaction, None if epoch is None else epoch.baseline_seq

    def _find_plain(
        self, session_id: SessionID, model: ModelRef, cut: Cut, sent: tuple[LLMMessage, ...]
    ) -> Seq | None:
        """Up to where `sent` is the history without native parts; None if it is not the history."""
        rows = [row for row in self._ledger.messages(session_id) if _is_shown(row, cut)]
        plain = [_plain_until(rows)]
        if session_id in self._natives_refused:
            plain.append(self._ledger.latest(session_id))
        for until in plain:
            if self._is_history(session_id, model, rows, sent, until):
                return until
        return None

    def _is_history(
        self,
        session_id: SessionID,
        model: ModelRef,
        rows: list[MessageRow],
        sent: tuple[LLMMessage, ...],
        plain_until: Seq,
    ) -> bool:
        lowered = (self._lower(row, model, native=row.seq > plain_until) for row in rows)
        if call_ids.same_but_for_ids(sent, tuple(said for one in lowered for said in one)):
            return True
        # Exclusions that came after the request was built take effect with the next one.
        messages = {row.id: (row.message(), row.seq > plain_until) for row in rows}
        since = self._asked_at.get(session_id, Seq(-1))
        for event in reversed(self._ledger.exclusions(session_id, since)):
            if event.message_id in messages:
                message, native = messages[event.message_id]
                before = omission.after_exclusion(message, _undone(event))
                messages[event.message_id] = before, native
            shown = (
                history_to_llm.lower(one, model, native=native) for one, native in messages.values()
            )
            if call_ids.same_but_for_ids(sent, tuple(said for one in shown for said in one)):
                return True
        return False

    def _lower(self, row: MessageRow, model: ModelRef, *, native: bool) -> tuple[LLMMessage, ...]:
        """Equal rows mean the same to a model: most of a history was lowered before."""
        key = (row.stored, model, native)
        known = self._lowered.get(key)
        if known is None:
            lowered = history_to_llm.lower(row.message(), model, native=native)
            known = self._lowered[key] = tuple(lowered)
        return known

    def _check_epoch(self, request: Request) -> None:
        compaction, baseline = request.cut
        if self.may_lack_context or compaction is None or baseline is None:
            # While a source cannot be looked at, a new baseline would lack it.
            return
        if baseline < compaction:
            self.accuse("P7", f"{request.session_id} was compacted and its old epoch goes on")

    def _check_structure(self, request: Request) -> None:
        if repeated := call_ids.find_repeated(request.messages):
            self.accuse("P6", f"calls with the ids of earlier ones: {repeated}")
        open_calls: list[str] = []
        for message in request.messages:
            if message.role == "tool":
                answered = _results(message)
                if not set(answered) <= set(open_calls):
                    self.accuse("P6", f"results {answered} for calls {open_calls}")
                open_calls = [call for call in open_calls if call not in answered]
                continue
            if open_calls:
                self.accuse("P6", f"calls without a result: {open_calls}")
            open_calls = _local_calls(message)
        if open_calls:
            self.accuse("P6", f"calls without a result: {open_calls}")

    # ---- tools ----------------------------------------------------------------------------------

    def started(self, process: str, context: ToolCallContext) -> Effect:
        key = (context.assistant_message_id, context.call_id)
        if key in self.effects:
            self.accuse("P4", f"the effect of call {key} was started twice")
        # Of a process that is taken for dead another one may have settled the call already.
        if self._alive(process) and not self._recorded(context):
            self.accuse("P4", f"the effect of call {key} was started before its record")
        effect = self.effects[key] = Effect(process, context.session_id)
        _tell(self._awaited_starts, effect)
        return effect

    def _recorded(self, context: ToolCallContext) -> bool:
        message = self._ledger.message(context.session_id, context.assistant_message_id)
        return isinstance(message, AssistantMessage) and any(
            isinstance(part, ToolPart)
            and part.id == context.call_id
            and isinstance(part.state, RunningState)
            for part in message.content
        )

    def finished(self, effect: Effect) -> None:
        effect.finished = True
        _tell(self._awaited, effect)

    def died(self, process: str) -> None:
        """The process was killed, with all that it was doing."""
        for effect in self.effects.values():
            effect.died |= effect.process == process and not effect.finished

    async def next_start(self) -> Effect:
        """The next tool that begins, at the very moment."""
        return await _next(self._awaited_starts)

    async def next_finish(self) -> Effect:
        """The next tool that comes to a good end, at the very moment."""
        return await _next(self._awaited)

    async def next_end(self) -> SessionID:
        """Where the next step ends, as soon as that is recorded."""
        return await _next(self._awaited_ends)

    # ---- waits that only an interrupt ends ------------------------------------------------------

    def stalls_begin(self, process: str, session_id: SessionID) -> None:
        key = (process, session_id)
        self.stalls[key] = self.stalls.get(key, 0) + 1

    def stalls_end(self, process: str, session_id: SessionID) -> None:
        self.stalls[process, session_id] -= 1

    def stalled(self, process: str, session_id: SessionID) -> bool:
        return self.stalls.get((process, session_id), 0) > 0


async def _next(awaited: list[asyncio.Future[T]]) -> T:
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    awaited.append(future)
    return await future


def _tell(awaited: list[asyncio.Future[T]], what: T) -> None:
    for future in awaited:
        if not future.done():
            future.set_result(what)
    awaited.clear()


def _plain_until(rows: list[MessageRow]) -> Seq:
    """Where the answers end that a later step says to have been sent without native parts."""
    for row in reversed(rows):
        if b'"plain":true' not in row.stored:
            continue
        match row.message():
            case AssistantMessage(route=StepRoute(plain=True)):
                return Seq(row.seq - 1)
            case _:
                pass
    return Seq(-1)


def _without_note(segments: tuple[Segment, ...]) -> tuple[LLMMessage, ...]:
    """What was sent of the history; the note of a last step is no part of it."""
    messages = tuple(message for segment in segments for message in segment.messages)
    return messages[:-1] if messages and messages[-1] == _NOTE else messages


def _undone(event: events.ExclusionEvent) -> events.ExclusionEvent:
    opposite = (
        events.MessageRestored
        if isinstance(event, events.MessageExcluded)
        else events.MessageExcluded
    )
    return opposite(
        timestamp=event.timestamp,
        session_id=event.session_id,
        message_id=event.message_id,
        call_id=event.call_id,
    )


def _is_shown(row: MessageRow, cut: Cut) -> bool:
    """By a reading of the rules that is not ours: whether a model is shown this message."""
    compaction, baseline = cut
    if row.type == "system":
        return baseline is None or row.seq > baseline
    return compaction is None or row.seq >= compaction


def _results(message: LLMMessage) -> list[str]:
    return [part.id for part in message.content if isinstance(part, ToolResultPart)]


def _local_calls(message: LLMMessage) -> list[str]:
    return [
        part.id
        for part in message.content
        if isinstance(part, ToolCallPart) and not part.provider_executed
    ]
