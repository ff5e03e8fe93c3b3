"""Checkers of recovery: no mark outlives its run, and no run brings down process after process."""

from collections import Counter
from collections.abc import Iterator

from perdure.core import limits
from perdure.core.session import recovery
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session import event as events
from tests.harness.checkers.checker import Seen


class MarksEndWithTheirRuns:
    """At rest nothing is owed. What waits for a person has been decided by then.

    What could not be run when its process died runs with the next prompt.
    """

    promise = "P1"

    def check(self, seen: Seen) -> Iterator[str]:
        if not seen.at_rest:
            return
        machine = seen.clients.machine
        for session_id, state in machine.ledger.attempts().items():
            if session_id in machine.witness.excused:
                continue
            yield f"{session_id} owes a request that is {state}, and nothing runs"


class DeadlyRunsAreStopped:
    """Runs whose calls bring their processes down are left to a person, also if the model goes on.

    Counted are the steps of a run, one after the other, that a later process settled and ended. The
    last death allowed is settled as a failed step, and then the run waits.
    """

    promise = "P4"

    def __init__(self) -> None:
        self._cut: set[MessageID] = set()
        self._in_a_row: Counter[SessionID] = Counter()

    def check(self, seen: Seen) -> Iterator[str]:
        effects = seen.clients.machine.witness.effects
        for item in seen.fresh:
            match item.event:
                case events.ToolFailed(assistant_message_id=step, call_id=call, error=error):
                    effect = effects.get((step, call))
                    unknown = error.message == recovery.OUTCOME_UNKNOWN
                    if effect is not None and effect.died and unknown:
                        self._cut.add(step)
                case events.StepEnded(assistant_message_id=step) if step in self._cut:
                    self._in_a_row[item.session_id] += 1
                    if self._in_a_row[item.session_id] >= limits.RECOVERY_DEATHS_MAX:
                        yield f"{item.session_id} goes on after a death in each of its steps"
                case events.StepEnded() | events.StepFailed() | events.PromptPromoted():
                    self._in_a_row.pop(item.session_id, None)
                case _:
                    pass
