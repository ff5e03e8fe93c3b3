"""The Session Drain as a state machine: the next step, and when to stop.

A drain promotes prompts and runs Provider Turns until nothing more is due. It has no durable
identity: its whole input is the inbox and the log. Steers and notices join at every boundary;
queued prompts start one by one, each when the drain would otherwise end.
"""

from perdure.core.session.inbox import Promotion
from perdure.schema.value import Value


class Pending(Value):
    """Which kinds of input are waiting."""

    steer: bool
    queue: bool
    notice: bool = False
    """Whether a Notice waits; it joins as a steer does."""

    @property
    def joins(self) -> bool:
        """Whether some input joins at the next boundary, even during a run."""
        return self.steer or self.notice


class RunTurn(Value):
    """One Provider Turn. `step` counts turns since input was last promoted."""

    promotion: Promotion
    step: int
    for_input: bool = False
    """Whether the turn is only for pending input: without input it is not run."""


class Stop(Value):
    pass


DrainStep = RunTurn | Stop


def first_step(pending: Pending) -> DrainStep:
    """The first step of a drain."""
    if pending.joins:
        return RunTurn("steer", 1, for_input=True)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return Stop()


def next_step(step: int, pending: Pending, *, continues: bool) -> DrainStep:
    """What follows the turn that was `step`; `continues`: the model waits for tool results."""
    if continues or pending.joins:
        return RunTurn("steer", step + 1, for_input=not continues)
    if pending.queue:
        return RunTurn("queue", 1, for_input=True)
    return Stop()


def repeat_turn(step: int) -> RunTurn:
    """The same turn once more. Steers and notices that arrived meanwhile join it."""
    return RunTurn("steer", step)


def step_of(turn: RunTurn, *, promoted: int) -> int:
    """The step of a turn. Promoting new input restarts the agent's allowance of steps."""
    return 1 if promoted else turn.step


def is_last(step: int, steps_max: int | None) -> bool:
    """Whether the agent must answer in text now, because its allowance is used up."""
    return steps_max is not None and step >= steps_max
