"""The order of events in the log of a Session, as a grammar: what may follow what.

`LogGrammar` reads one log from its beginning and knows nothing else, so it also reads what a server
tells over HTTP. `LogsFollowTheGrammar` feeds it every log of a simulation, of a crash, of a load.

    log     = created (copied* forked)? fact* deleted?
    step    = started (text | reasoning | call)* (ended | failed)      one at a time, parts inside
    call    = input.started input.ended? (called progress* todos?)? (success | failed)
    pruned  = once for a settled call, after its step
    prompt  = admitted revised* (promoted | cancelled)                 promoted between steps
"""

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import field

from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.value import State
from tests.harness.checkers.checker import Seen

_BETWEEN_STEPS: Final = (
    events.PromptPromoted,
    events.ContextUpdated,
    events.SyntheticAdded,
    events.CompactionStarted,
    events.CompactionEnded,
    events.Retried,
    events.ModelSubstituted,
    events.Forked,
    events.ToolPruned,
)
"""Facts of a boundary, or of a request of which nothing came: never while a step is open."""
_NOT_WHILE_STAGED: Final = (
    events.PromptAdmitted,
    events.PromptPromoted,
    events.CompactionStarted,
)
"""Nothing joins and nothing is sent; what a dead process left is still recorded as failed."""
_InboxFact = (
    events.PromptAdmitted
    | events.PromptPromoted
    | events.PromptRevised
    | events.PromptCancelled
    | events.InboxReordered
)
_Stage = Literal["started", "ended", "called", "settled"]
_NEXT: Final[dict[type[events.ToolFact], tuple[frozenset[_Stage], _Stage]]] = {
    events.ToolInputEnded: (frozenset({"started"}), "ended"),
    events.ToolCalled: (frozenset({"ended"}), "called"),
    events.ToolProgressed: (frozenset({"called"}), "called"),
    events.TodosUpdated: (frozenset({"called"}), "called"),
    events.ToolSucceeded: (frozenset({"called"}), "settled"),
    events.ToolFailed: (frozenset({"started", "ended", "called"}), "settled"),
}
"""From which stages of a call a fact may follow, and the stage after it."""


class _Step(State):
    id: MessageID
    begun: Seq
    only_fails: bool = False
    """It began while a revert was staged: nothing was sent, and the next fact is its failure."""
    open_parts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    ended_parts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    calls: dict[str, _Stage] = field(default_factory=dict[str, _Stage])

    @property
    def open_calls(self) -> list[str]:
        return [call for call, stage in self.calls.items() if stage != "settled"]


class _Prompt(State):
    admitted: Seq
    promoted: Seq | None = None
    cancelled: bool = False

    @property
    def waits(self) -> bool:
        return self.promoted is None and not self.cancelled


class LogGrammar:
    """Reads one log. With `created`, the first event is already known to be the creation."""

    def __init__(self, *, created: bool = False) -> None:
        self._next = Seq(1 if created else 0)
        self._deleted = False
        self._step: _Step | None = None
        self._steps: dict[MessageID, Seq] = {}
        """Every step that has begun, the open one included."""
        self._gone: set[MessageID] = set()
        """Steps that a revert took away; what their turn still records is not shown."""
        self._unpruned: set[tuple[MessageID, ToolCallID]] = set()
        """Settled calls of steps that are over, whose results are sent whole."""
        self._prompts: dict[MessageID, _Prompt] = {}
        self._boundaries: dict[MessageID, Seq] = {}
        """Messages that a revert can go back to."""
        self._compaction: MessageID | None = None
        self._staged = False
        self._shells: set[str] = set()

    def read(self, seq: Seq, event: SessionEvent) -> Iterator[str]:
        """What is wrong with the next event, in words."""
        name = f"{seq} {type(event).__name__}"
        for fault in self._faults(seq, event):
            yield f"{name}: {fault}"
        self._next = Seq(seq + 1)

    def unfinished(self) -> Iterator[str]:
        """What is still open; at rest nothing may be."""
        if self._step is not None:
            yield f"step {self._step.id} is open, with calls {self._step.open_calls}"

    @property
    def waiting(self) -> list[MessageID]:
        """Prompts that were admitted, and neither promoted nor cancelled."""
        return [found for found, prompt in self._prompts.items() if prompt.waits]

    def _faults(self, seq: Seq, event: SessionEvent) -> Iterator[str]:
        if seq != self._next:
            yield f"expected sequence {self._next}"
        if isinstance(event, events.SessionCreated) != (seq == 0):
            yield "a log has one creation, which is its first event"
        if self._deleted:
            yield "nothing follows the deletion"
        if self._staged and isinstance(event, _NOT_WHILE_STAGED):
            yield "a revert is staged"
        yield from _misplaced(self._step, event)
        if isinstance(event, events.ToolPruned):
            yield from self._read_pruned(event)
            return
        if isinstance(event, events.StepFact):
            if event.assistant_message_id not in self._gone:
                yield from self._read_step(seq, event)
            return
        yield from self._read_fact(seq, event)

    # ---- steps ----------------------------------------------------------------------------------

    def _read_step(self, seq: Seq, event: events.StepFact) -> Iterator[str]:
        step_id, step = event.assistant_message_id, self._step
        if isinstance(event, events.StepStarted):
            if step is not None:
                yield f"step {step.id} is open"
            if step_id in self._steps:
                yield f"step {step_id} began twice"
            self._step = _Step(step_id, seq, only_fails=self._staged)
            self._steps[step_id] = seq
            return
        if step is None or step.id != step_id:
            yield f"step {step_id} {'is over' if step_id in self._steps else 'never began'}"
            return
        if step.only_fails and not isinstance(event, events.StepFailed):
            yield "a revert is staged"
        match event:
            case events.StepEnded() | events.StepFailed():
                yield from self._end_step(step, event)
            case events.ToolFact():
                yield from _read_call(step, event)
            case _:
                yield from _read_part(step, event)

    def _read_pruned(self, event: events.ToolPruned) -> Iterator[str]:
        key = (event.assistant_message_id, event.call_id)
        if key not in self._unpruned and event.assistant_message_id not in self._gone:
            yield f"call {event.call_id} is not settled, or is pruned already"
        self._unpruned.discard(key)

    def _end_step(self, step: _Step, event: events.StepFact) -> Iterator[str]:
        self._step = None
        self._unpruned |= {(step.id, ToolCallID(call)) for call in step.calls}
        if step.open_calls:
            yield f"calls {step.open_calls} are not settled"
        # A process that dies takes the end of a text with it; recovery fails the step only.
        if step.open_parts and isinstance(event, events.StepEnded):
            yield f"parts {sorted(step.open_parts)} have not ended"

    # ---- everything else ------------------------------------------------------------------------

    def _read_fact(self, seq: Seq, event: SessionEvent) -> Iterator[str]:
        match event:
            case events.CompactionStarted(message_id=id):
                self._compaction = id
            case events.CompactionEnded(message_id=id):
                if self._compaction != id:
                    yield f"compaction {id} has not begun, or is over"
                self._compaction = None
                self._boundaries[id] = seq
            case events.ShellStarted(call_id=call):
                self._shells.add(call)
            case events.ShellEnded(call_id=call):
                if call not in self._shells:
                    yield f"command {call} has not begun, or is over"
                self._shells.discard(call)
            case (
                events.PromptAdmitted()
                | events.PromptPromoted()
                | events.PromptRevised()
                | events.PromptCancelled()
                | events.InboxReordered()
            ):
                yield from self._read_inbox(seq, event)
            case _:
                yield from self._read_change(seq, event)

    def _read_change(self, seq: Seq, event: SessionEvent) -> Iterator[str]:
        match event:
            case events.RevertStaged():
                self._staged = True
            case events.RevertCleared() | events.RevertCommitted():
                # A fork copies a revert that was committed, and not that it was staged.
                if not self._staged and isinstance(event, events.RevertCleared):
                    yield "no revert is staged"
                self._staged = False
                if isinstance(event, events.RevertCommitted):
                    yield from self._revert(event.message_id)
            case events.Deleted():
                self._deleted = True
            case events.ContextUpdated() | events.SyntheticAdded():
                self._boundaries[event.message_id] = seq
            case events.AgentSwitched() | events.ModelSwitched():
                self._boundaries[event.message_id] = seq
            case _:
                pass

    def _read_inbox(self, seq: Seq, event: _InboxFact) -> Iterator[str]:
        match event:
            case events.InboxReordered(message_ids=moved):
                for prompt in moved:
                    yield from self._require_waiting(prompt)
            case events.PromptAdmitted(message_id=id):
                if id in self._prompts:
                    yield f"prompt {id} was admitted twice"
                self._prompts[id] = _Prompt(seq)
            case events.PromptPromoted(message_id=id):
                yield from self._require_waiting(id)
                self._prompts.setdefault(id, _Prompt(seq)).promoted = seq
                self._boundaries[id] = seq
            case events.PromptRevised(message_id=id):
                yield from self._require_waiting(id)
            case events.PromptCancelled(message_id=id):
                yield from self._require_waiting(id)
                self._prompts.setdefault(id, _Prompt(seq)).cancelled = True

    def _require_waiting(self, id: MessageID) -> Iterator[str]:
        prompt = self._prompts.get(id)
        if prompt is None:
            yield f"prompt {id} was never admitted"
        elif not prompt.waits:
            yield f"prompt {id} does not wait: it was promoted or cancelled"

    def _revert(self, message_id: MessageID) -> Iterator[str]:
        boundary = self._boundaries.get(message_id, self._steps.get(message_id))
        if boundary is None:
            yield f"message {message_id} is not there"
            return
        self._gone |= {step for step, begun in self._steps.items() if begun > boundary}
        self._steps = _up_to(boundary, self._steps)
        self._boundaries = _up_to(boundary, self._boundaries)
        self._prompts = {
            key: prompt
            for key, prompt in self._prompts.items()
            if max(prompt.admitted, prompt.promoted or prompt.admitted) <= boundary
        }
        self._compaction = None
        if self._step is not None and self._step.id in self._gone:
            self._step = None


class LogsFollowTheGrammar:
    """The events of each Session are in an order that the grammar allows."""

    promise = "P2"

    def __init__(self) -> None:
        self._logs: dict[SessionID, LogGrammar] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            if item.seq == 0:
                # The id of a deleted Session may be used again.
                self._logs[item.session_id] = LogGrammar()
            log = self._logs.setdefault(item.session_id, LogGrammar())
            for fault in log.read(item.seq, item.event):
                yield f"{item.session_id} {fault}"
        if seen.at_rest:
            for session_id, log in self._logs.items():
                for fault in log.unfinished():
                    yield f"{session_id} at rest: {fault}"


def check_log(log: list[SessionEvent], *, at_rest: bool = True) -> list[str]:
    """Everything that is wrong with a whole log."""
    grammar = LogGrammar()
    found = [fault for seq, event in enumerate(log) for fault in grammar.read(Seq(seq), event)]
    return [*found, *(grammar.unfinished() if at_rest else ())]


def _up_to(boundary: Seq, places: dict[MessageID, Seq]) -> dict[MessageID, Seq]:
    return {found: seq for found, seq in places.items() if seq <= boundary}


def _read_call(step: _Step, event: events.ToolFact) -> Iterator[str]:
    call = event.call_id
    if isinstance(event, events.ToolInputStarted):
        if call in step.calls:
            yield f"call {call} began twice"
        step.calls[call] = "started"
        return
    allowed, after = _NEXT[type(event)]
    stage = step.calls.get(call)
    if stage not in allowed:
        yield f"call {call} is {stage or 'not known'}, not {' or '.join(sorted(allowed))}"
    step.calls[call] = after


def _read_part(step: _Step, event: events.StepFact) -> Iterator[str]:
    match event:
        case events.TextStarted(text_id=id) | events.ReasoningStarted(reasoning_id=id):
            part = (_kind(event), id)
            if part in step.open_parts | step.ended_parts:
                yield f"{part} began twice"
            step.open_parts.add(part)
        case events.TextEnded(text_id=id) | events.ReasoningEnded(reasoning_id=id):
            part = (_kind(event), id)
            if part not in step.open_parts:
                yield f"{part} has not begun, or is over"
            step.open_parts.discard(part)
            step.ended_parts.add(part)
        case _:
            yield "it is no fact of a step that the grammar knows"


def _misplaced(step: _Step | None, event: SessionEvent) -> Iterator[str]:
    """Whether a fact stands inside a step, or outside one, where it may not."""
    if step is None and _says_continued(event):
        yield "no answer is open that could go on"
    elif step is not None and isinstance(event, _BETWEEN_STEPS) and not _continues(step, event):
        yield f"step {step.id} is open"


def _continues(step: _Step, event: SessionEvent) -> bool:
    """Whether the answer of an open step goes on where its connection broke: in its one text."""
    kinds = [kind for kind, _ in step.open_parts]
    return _says_continued(event) and kinds == ["text"] and not step.ended_parts and not step.calls


def _says_continued(event: SessionEvent) -> bool:
    if not isinstance(event, events.Retried):
        return False
    return (event.error.metadata or {}).get("answer") == "continued"


def _kind(event: events.StepFact) -> str:
    return "text" if isinstance(event, events.TextStarted | events.TextEnded) else "reasoning"
