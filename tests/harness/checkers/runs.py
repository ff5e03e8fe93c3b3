"""Checkers of runs: each prompt is answered, each step and call is settled exactly once."""

from collections.abc import Iterator

from msgspec import UNSET

from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.message import AssistantMessage, ToolPart
from perdure.schema.session.tool import RunningState
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.reverted import Reverted
from tests.harness.checkers.witness import CallKey


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
            # What a running turn still records of a reverted step is no longer shown.
            gone = self._reverted.messages
            if isinstance(event, events.ToolPruned):
                # Of a step that ended long ago; see the grammar of the log.
                continue
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
    """Every pending request belongs to a call that is open.

    At rest there are none, including those of dead processes.
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
    """At rest the last message is the model's answer, or a recorded failure."""

    promise = "P1"

    def __init__(self) -> None:
        self._unanswered: dict[SessionID, MessageID] = {}
        self._reverted = Reverted()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            self._reverted.boundary(item)
            match item.event:
                # A fork begins without a prompt that waits for an answer.
                case events.PromptPromoted(message_id=id) if not item.copied:
                    self._unanswered[item.session_id] = id
                case events.StepStarted() | events.RevertCommitted():
                    # After a revert to a prompt, that prompt is not answered.
                    self._unanswered.pop(item.session_id, None)
                case _:
                    pass
        if seen.at_rest:
            owed = seen.clients.machine.ledger.attempts()
            for session_id, prompt in self._unanswered.items():
                # That nothing is owed for good is another checker's promise.
                if prompt not in self._reverted.messages and session_id not in owed:
                    yield f"{prompt} of {session_id} was promoted, and nothing came of it"


def _is_open(message: AssistantMessage, call_id: ToolCallID) -> bool:
    return any(
        isinstance(part, ToolPart) and part.id == call_id and isinstance(part.state, RunningState)
        for part in message.content
    )
