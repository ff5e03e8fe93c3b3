"""What a run owes: each prompt once and answered, each step and call settled, exactly once."""

from collections.abc import Iterator

from msgspec import UNSET

from perdure.schema import session_event as events
from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.message import AssistantMessage, ToolPart
from perdure.schema.permission import PermissionRequest
from perdure.schema.session_input import AdmittedPrompt
from perdure.schema.tool import RunningState
from perdure.testing.checker import Seen
from perdure.testing.ledger import LoggedEvent
from perdure.testing.reverted import Reverted
from perdure.testing.witness import CallKey


class PromptsArePromotedOnce:
    """A prompt runs at most once and, at rest, exactly once. A receipt is a record."""

    promise = "P1"

    def __init__(self) -> None:
        self._pending: dict[MessageID, LoggedEvent] = {}
        self._admitted: dict[MessageID, LoggedEvent] = {}
        self._promoted: dict[MessageID, Seq] = {}
        self._reverted = Reverted()
        self._gone: set[tuple[MessageID, Seq]] = set()
        """Admissions that a revert took away."""
        self._receipts: dict[MessageID, AdmittedPrompt] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            yield from self._take(item)
            boundary = self._reverted.boundary(item)
            if boundary is not None:
                self._revert(item.session_id, boundary)
        yield from self._check_receipts(seen)
        if seen.at_rest:
            yield from self._check_rest(seen)

    def _take(self, item: LoggedEvent) -> Iterator[str]:
        match item.event:
            case events.PromptAdmitted(message_id=id):
                if id in self._admitted:
                    yield f"{id} was admitted twice"
                self._admitted[id] = self._pending[id] = item
            case events.PromptPromoted(message_id=id, prompt=prompt):
                admitted = self._pending.pop(id, None)
                self._promoted[id] = item.seq
                if admitted is None:
                    yield f"{id} was promoted twice, or never admitted"
                elif _prompt_of(admitted) != prompt:
                    yield f"{id} was promoted with another body"
            case events.PromptCancelled(message_id=id):
                if self._pending.pop(id, None) is None:
                    yield f"{id} was cancelled when it did not wait"
            case _:
                pass

    def _revert(self, session_id: SessionID, boundary: Seq) -> None:
        for prompt, admitted in tuple(self._admitted.items()):
            if admitted.session_id != session_id:
                continue
            if max(admitted.seq, self._promoted.get(prompt, Seq(-1))) > boundary:
                self._gone.add((prompt, admitted.seq))
                del self._admitted[prompt]
                self._pending.pop(prompt, None)
                self._promoted.pop(prompt, None)

    def _check_receipts(self, seen: Seen) -> Iterator[str]:
        for prompt in seen.clients.prompts.values():
            # The log never changes: what was found in it once stays there.
            if prompt.receipt is None or prompt.receipt is self._receipts.get(prompt.id):
                continue
            self._receipts[prompt.id] = prompt.receipt
            if (prompt.id, prompt.receipt.admitted_seq) in self._gone:
                continue
            admitted = self._admitted.get(prompt.id)
            if admitted is None or admitted.seq != prompt.receipt.admitted_seq:
                yield f"{prompt.id} has a receipt and no admission at its sequence"

    def _check_rest(self, seen: Seen) -> Iterator[str]:
        for pending, admitted in self._pending.items():
            session_id = admitted.session_id
            excused = seen.clients.machine.witness.excused.get(session_id, Seq(-1))
            sent = seen.clients.prompts.get(pending)
            # One that nobody sent is a task.
            if (sent is None or sent.woken) and admitted.seq > excused:
                yield f"{pending} of {session_id} waits although nothing runs: a lost wake"


class CallsAreSettledOnce:
    """One settlement for each call, inside its step; what succeeded is recorded as a success."""

    promise = "P4"

    def __init__(self) -> None:
        self._open: dict[CallKey, SessionID] = {}
        self._settled: dict[CallKey, str] = {}
        self._steps: dict[MessageID, SessionID] = {}
        self._ended: set[MessageID] = set()
        self._reverted = Reverted()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            event = item.event
            if self._reverted.boundary(item) is not None:
                self._forget(self._reverted.messages)
            # Nobody sees any more what a running turn still records of a step that was taken away.
            gone = self._reverted.messages
            if isinstance(event, events.StepFact) and event.assistant_message_id not in gone:
                if event.assistant_message_id in self._ended:
                    yield f"{type(event).__name__} after the end of {event.assistant_message_id}"
                yield from self._take(item.session_id, event)
        yield from self._check_successes(seen)
        if seen.at_rest:
            yield from self._check_rest()

    def _forget(self, gone: set[MessageID]) -> None:
        self._steps = {step: where for step, where in self._steps.items() if step not in gone}
        self._open = {call: where for call, where in self._open.items() if call[0] not in gone}

    def _take(self, session_id: SessionID, event: events.StepFact) -> Iterator[str]:
        step = event.assistant_message_id
        match event:
            case events.StepStarted():
                self._steps[step] = session_id
            case events.StepEnded() | events.StepFailed():
                self._ended.add(step)
                self._steps.pop(step, None)
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
            if key[0] in self._reverted.messages:
                continue
            if effect.finished and self._settled.get(key) == "ToolFailed":
                alive = effect.process in {p.name for p in seen.clients.machine.processes}
                if alive:
                    yield f"call {key} came to a good end and was recorded as failed"

    def _check_rest(self) -> Iterator[str]:
        for step, session_id in self._steps.items():
            yield f"step {step} of {session_id} is open although nothing runs"
        for (step, call), session_id in self._open.items():
            yield f"call {call} of {step} in {session_id} is open although nothing runs"


class RequestsBelongToOpenCalls:
    """Whoever is written down as waiting for a person has a call that is open.

    A dead process waits for nobody: what it leaves written down is gone at rest, as is all else.
    """

    promise = "P4"

    def check(self, seen: Seen) -> Iterator[str]:
        machine = seen.clients.machine
        alive = {process.name for process in machine.processes}
        for row in machine.ledger.pending():
            request = row.request
            if seen.at_rest:
                yield f"{request.id} of {row.process} waits although nothing runs"
                continue
            source = request.source if isinstance(request, PermissionRequest) else request.tool
            if row.process not in alive or source is UNSET:
                continue
            message = machine.ledger.message(request.session_id, source.message_id)
            # What a revert took away may still be running.
            if isinstance(message, AssistantMessage) and not _is_open(message, source.call_id):
                yield f"{request.id} waits for call {source.call_id}, which is settled"


class PromptsAreAnswered:
    """At rest the last word is the model's, or a failure for all to see."""

    promise = "P1"

    def __init__(self) -> None:
        self._unanswered: dict[SessionID, MessageID] = {}
        self._reverted = Reverted()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            self._reverted.boundary(item)
            match item.event:
                case events.PromptPromoted(message_id=id):
                    self._unanswered[item.session_id] = id
                case events.StepStarted() | events.RevertCommitted():
                    # Whoever goes back to a prompt does not wait for its answer.
                    self._unanswered.pop(item.session_id, None)
                case _:
                    pass
        if seen.at_rest:
            owed = seen.clients.machine.ledger.attempts()
            for session_id, prompt in self._unanswered.items():
                # That nothing is owed for good is another checker's promise.
                if prompt not in self._reverted.messages and session_id not in owed:
                    yield f"{prompt} of {session_id} was promoted, and nothing came of it"


class PromptsFollowAnEndedRevert:
    """No prompt is admitted while a revert is staged: it goes on from where they went back to."""

    promise = "P1"

    def __init__(self) -> None:
        self._staged: set[SessionID] = set()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            match item.event:
                case events.RevertStaged():
                    self._staged.add(item.session_id)
                case events.RevertCleared() | events.RevertCommitted():
                    self._staged.discard(item.session_id)
                case events.PromptAdmitted(message_id=prompt):
                    if item.session_id in self._staged:
                        yield f"{prompt} was admitted behind a revert that is still staged"
                case _:
                    pass


def _is_open(message: AssistantMessage, call_id: ToolCallID) -> bool:
    return any(
        isinstance(part, ToolPart) and part.id == call_id and isinstance(part.state, RunningState)
        for part in message.content
    )


def _prompt_of(item: LoggedEvent) -> object:
    assert isinstance(item.event, events.PromptAdmitted)
    return item.event.prompt
