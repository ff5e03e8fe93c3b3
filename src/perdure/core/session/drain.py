"""The Session Drain as a state machine: what comes next, and when it is over.

A drain promotes what may be promoted and runs Provider Turns until nothing immediate remains. It
has no durable identity: everything it needs to know is in the inbox and the log. Steers and notices
join at every boundary; a queued prompt starts only when the drain would otherwise end, one by one.
"""

from perdure.core.session.inbox import Promotion
from perdure.schema.value import Value


class Pending(Value):
    """What waits to be heard right now."""

    steer: bool
    queue: bool
    notice: bool = False
    """Whether the runtime has something to tell; it joins as a steer does."""

    @property
    def joins(self) -> bool:
        """Whether something waits for the next boundary, whatever else is under way."""
        return self.steer or self.notice


class RunTurn(Value):
    """One Provider Turn. `step` counts turns since input was last promoted."""

    promotion: Promotion
    step: int
    for_input: bool = False
    """Whether it is there only for what is pending: without that, there is nothing to ask."""


class Stop(Value):
    pass


class TurnOutcome(Value):
    """How a turn ended: the step it really was (a promotion restarts the count), and whether the
    model waits for tool results."""

    step: int
    needs_continuation: bool


DrainStep = RunTurn | Stop


def first_step(pending: Pending, *, force: bool) -> DrainStep:
    """The first step; a forced drain runs a turn even with an empty inbox."""
    if pending.joins:
        return RunTurn("steer", 1, for_input=True)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return RunTurn("none", 1) if force else Stop()


def next_step(outcome: TurnOutcome, pending: Pending) -> DrainStep:
    if outcome.needs_continuation or pending.joins:
        return RunTurn("steer", outcome.step + 1, for_input=not outcome.needs_continuation)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return Stop()


def repeat_turn(step: int) -> RunTurn:
    """The same turn once more. Who had something to say meanwhile is heard."""
    return RunTurn("steer", step)


def step_of(turn: RunTurn, *, promoted: int) -> int:
    """Promoting new input gives the agent its whole allowance again, once for each boundary."""
    return 1 if promoted else turn.step


def is_last(step: int, steps_max: int | None) -> bool:
    """Whether the agent must answer in text now: its allowance of turns is used up."""
    return steps_max is not None and step >= steps_max
