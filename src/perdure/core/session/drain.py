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


DrainStep = RunTurn | Stop


def begin(pending: Pending) -> DrainStep:
    """The first step of a drain."""
    if pending.joins:
        return RunTurn("steer", 1, for_input=True)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return Stop()


def after(step: int, pending: Pending, *, continues: bool) -> DrainStep:
    """What follows the turn that was `step`; `continues`: the model waits for tool results."""
    if continues or pending.joins:
        return RunTurn("steer", step + 1, for_input=not continues)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return Stop()


def again(step: int) -> RunTurn:
    """The same turn once more. Steers and notices that arrived meanwhile join it."""
    return RunTurn("steer", step)


def step_of(turn: RunTurn, *, promoted: int) -> int:
    """Promoting new input gives the agent its whole allowance again, once for each boundary."""
    return 1 if promoted else turn.step


def is_last(step: int, steps_max: int | None) -> bool:
    """Whether the agent must answer in text now: its allowance of turns is used up."""
    return steps_max is not None and step >= steps_max
