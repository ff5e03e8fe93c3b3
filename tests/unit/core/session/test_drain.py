"""The Session Drain: what comes next, for every state that it can be in."""

import pytest

from perdure.core.session import drain
from perdure.core.session.drain import DrainStep, Pending, RunTurn, Stop, TurnOutcome
from tests.requirements import requirement

NOTHING = Pending(steer=False, queue=False)
STEER = Pending(steer=True, queue=False)
QUEUE = Pending(steer=False, queue=True)
BOTH = Pending(steer=True, queue=True)
NOTICE = Pending(steer=False, queue=False, notice=True)
NOTICE_AND_QUEUE = Pending(steer=False, queue=True, notice=True)


@requirement("S69", "S70")
@pytest.mark.parametrize(
    ("pending", "force", "first"),
    [
        (NOTHING, False, Stop()),
        (NOTHING, True, RunTurn("none", 1)),
        (STEER, False, RunTurn("steer", 1, for_input=True)),
        (STEER, True, RunTurn("steer", 1, for_input=True)),
        (QUEUE, False, RunTurn("queue", 1, for_input=True)),
        (QUEUE, True, RunTurn("queue", 1, for_input=True)),
        (BOTH, False, RunTurn("steer", 1, for_input=True)),
        (BOTH, True, RunTurn("steer", 1, for_input=True)),
        (NOTICE, False, RunTurn("steer", 1, for_input=True)),
        (NOTICE, True, RunTurn("steer", 1, for_input=True)),
        (NOTICE_AND_QUEUE, False, RunTurn("steer", 1, for_input=True)),
    ],
)
def test_a_drain_begins(pending: Pending, first: DrainStep, *, force: bool) -> None:
    assert drain.first_step(pending, force=force) == first


@requirement("S68", "S69")
@pytest.mark.parametrize(
    ("continues", "pending", "following"),
    [
        (False, NOTHING, Stop()),
        (True, NOTHING, RunTurn("steer", 4)),
        (False, STEER, RunTurn("steer", 4, for_input=True)),
        (True, STEER, RunTurn("steer", 4)),
        (False, QUEUE, RunTurn("queue", 1, for_input=True)),
        (True, QUEUE, RunTurn("steer", 4)),
        (False, BOTH, RunTurn("steer", 4, for_input=True)),
        (True, BOTH, RunTurn("steer", 4)),
        (False, NOTICE, RunTurn("steer", 4, for_input=True)),
        (True, NOTICE, RunTurn("steer", 4)),
        (False, NOTICE_AND_QUEUE, RunTurn("steer", 4, for_input=True)),
    ],
)
def test_a_drain_goes_on(pending: Pending, following: DrainStep, *, continues: bool) -> None:
    outcome = TurnOutcome(step=3, needs_continuation=continues)
    assert drain.next_step(outcome, pending) == following


@requirement("S68")
def test_promoting_input_gives_the_whole_allowance_again() -> None:
    assert drain.step_of(RunTurn("steer", 7), promoted=0) == 7
    assert drain.step_of(RunTurn("steer", 7), promoted=1) == 1
    assert drain.step_of(RunTurn("steer", 7), promoted=5) == 1


@pytest.mark.parametrize(
    ("step", "steps_max", "last"),
    [
        (1, None, False),
        (10_000, None, False),
        (1, 1, True),
        (1, 2, False),
        (2, 2, True),
        (1_000, 2, True),  # An agent with a smaller allowance took over.
    ],
)
def test_the_last_step_is_where_the_allowance_ends(
    step: int, steps_max: int | None, *, last: bool
) -> None:
    assert drain.is_last(step, steps_max) is last


@requirement("S69")
def test_a_steer_and_two_queued_prompts_run_one_after_the_other_on_one_wake() -> None:
    steers, queued = ["steer"], ["first", "second"]
    order: list[str] = []

    def pending() -> Pending:
        return Pending(steer=bool(steers), queue=bool(queued))

    step = drain.first_step(pending(), force=False)
    while isinstance(step, RunTurn):
        if step.promotion == "queue":
            order.append(queued.pop(0))
        order += steers
        steers.clear()
        step = drain.next_step(TurnOutcome(step=step.step, needs_continuation=False), pending())
    assert order == ["steer", "first", "second"]


@requirement("S68")
def test_a_steer_that_arrives_during_the_last_turn_is_not_left_behind() -> None:
    outcome = TurnOutcome(step=1, needs_continuation=False)
    assert drain.next_step(outcome, STEER) == RunTurn("steer", 2, for_input=True)
