"""The grammar of the log accepts what a Session records, and finds each way to break the order."""

from collections.abc import Callable
from typing import Final

import pytest

from perdure.schema.ids import MessageID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.session import RevertState
from tests.fixtures import Facts, answered
from tests.harness.checkers import grammar

Log = list[SessionEvent]
STEP: Final = "msg_step"


def asked(facts: Facts) -> Log:
    return [facts.created(), facts.admitted("msg_a"), facts.promoted("msg_a")]


def call(facts: Facts, id: str = "c") -> Log:
    started, ended = facts.input_started(STEP, id), facts.input_ended(STEP, id)
    return [started, ended, facts.called(STEP, id), facts.succeeded(STEP, id)]


def whole(facts: Facts) -> Log:
    return [
        *asked(facts),
        facts.step(STEP),
        *facts.reasoning(STEP, "r", "hm"),
        *facts.text(STEP, "t", "so"),
        *call(facts),
        facts.input_started(STEP, "bad"),
        facts.tool_failed(STEP, "bad"),
        facts.ended(STEP),
        *answered(facts, "msg_b", "msg_c", "next"),
    ]


def staged(facts: Facts) -> SessionEvent:
    return facts.stamped(events.RevertStaged, revert=RevertState(message_id=MessageID("msg_a")))


def reverted(facts: Facts, to: str = "msg_a") -> SessionEvent:
    return facts.stamped(events.RevertCommitted, message_id=MessageID(to))


def test_a_whole_conversation_is_in_order() -> None:
    assert grammar.check_log(whole(Facts())) == []


def pruned(facts: Facts, call_id: str = "c") -> SessionEvent:
    return facts.stamped(events.ToolPruned, assistant_message_id=STEP, call_id=call_id)


def test_a_settled_result_may_be_pruned_long_after_its_step() -> None:
    facts = Facts()
    log = [*whole(facts), pruned(facts), pruned(facts, "bad")]
    assert grammar.check_log([*log, *answered(facts, "msg_d", "msg_e", "more")]) == []


def test_what_a_revert_took_away_may_come_again() -> None:
    facts = Facts()
    log = [*whole(facts), staged(facts), reverted(facts)]
    assert grammar.check_log([*log, *answered(facts, "msg_b", "msg_d", "again")]) == []


def test_what_a_turn_records_of_a_reverted_step_is_not_looked_at() -> None:
    facts = Facts()
    log = [*asked(facts), facts.step(STEP), staged(facts), reverted(facts)]
    assert grammar.check_log([*log, facts.ended(STEP)]) == []


def test_a_dead_process_may_leave_a_text_without_its_end() -> None:
    facts = Facts()
    log = [*asked(facts), facts.step(STEP), facts.text(STEP, "t", "so")[0], facts.failed(STEP)]
    assert grammar.check_log(log) == []


def test_a_prompt_that_a_dead_process_left_fails_although_a_revert_is_staged() -> None:
    facts = Facts()
    log = [*asked(facts), staged(facts), facts.step(STEP), facts.failed(STEP)]
    assert grammar.check_log(log) == []


BROKEN: Final[dict[str, Callable[[Facts], Log]]] = {
    "a log has one creation": lambda f: [f.created(), f.created()],
    "a log has one creation, which is its first": lambda f: [f.admitted("msg_a")],
    "msg_step never began": lambda f: [*asked(f), f.ended(STEP)],
    "msg_step is over": lambda f: [*asked(f), f.step(STEP), f.ended(STEP), f.ended(STEP)],
    "msg_step began twice": lambda f: [*asked(f), f.step(STEP), f.ended(STEP), f.step(STEP)],
    "msg_step is open": lambda f: [*asked(f), f.step(STEP), f.step("msg_other")],
    "is open, with calls": lambda f: [*asked(f), f.step(STEP)],
    "PromptPromoted: step msg_step is open": lambda f: [
        *asked(f),
        f.step(STEP),
        f.admitted("msg_b"),
        f.promoted("msg_b"),
    ],
    "calls ['c'] are not settled": lambda f: [
        *asked(f),
        f.step(STEP),
        *call(f)[:3],
        f.ended(STEP),
    ],
    "call c is ended, not called": lambda f: [
        *asked(f),
        f.step(STEP),
        *call(f)[:2],
        f.succeeded(STEP, "c"),
    ],
    "call c is settled": lambda f: [*asked(f), f.step(STEP), *call(f), f.tool_failed(STEP, "c")],
    "call c is not known": lambda f: [*asked(f), f.step(STEP), f.called(STEP, "c")],
    "call c is not settled, or is pruned already": lambda f: [*whole(f), pruned(f), pruned(f)],
    "call x is not settled": lambda f: [*whole(f), pruned(f, "x")],
    f"ToolPruned: step {STEP} is open": lambda f: [*asked(f), f.step(STEP), *call(f), pruned(f)],
    "call c began twice": lambda f: [*asked(f), f.step(STEP), *call(f), *call(f)],
    "have not ended": lambda f: [
        *asked(f),
        f.step(STEP),
        f.text(STEP, "t", "so")[0],
        f.ended(STEP),
    ],
    "('text', 't') has not begun": lambda f: [*asked(f), f.step(STEP), f.text(STEP, "t", "so")[1]],
    "('text', 't') began twice": lambda f: [
        *asked(f),
        f.step(STEP),
        *f.text(STEP, "t", "so"),
        *f.text(STEP, "t", "so"),
    ],
    "msg_b was never admitted": lambda f: [*asked(f), f.promoted("msg_b")],
    "msg_a does not wait": lambda f: [*asked(f), f.promoted("msg_a")],
    "msg_a was admitted twice": lambda f: [*asked(f), f.admitted("msg_a")],
    "msg_x has not begun": lambda f: [*asked(f), f.compacted("msg_x")],
    "a revert is staged": lambda f: [*asked(f), staged(f), f.step(STEP), f.ended(STEP)],
    "no revert is staged": lambda f: [*asked(f), f.stamped(events.RevertCleared)],
    "message msg_x is not there": lambda f: [*asked(f), staged(f), reverted(f, "msg_x")],
    "nothing follows the deletion": lambda f: [
        *asked(f),
        f.stamped(events.Deleted),
        f.admitted("msg_b"),
    ],
}


@pytest.mark.parametrize(("fault", "log"), BROKEN.items(), ids=BROKEN.keys())
def test_each_break_of_the_order_is_named(fault: str, log: Callable[[Facts], Log]) -> None:
    found = grammar.check_log(log(Facts()))
    assert any(fault in each for each in found), found


def test_every_fact_of_a_whole_log_is_needed_in_its_place() -> None:
    """Without any one of the facts that something follows from, the log is not in order."""
    log = whole(Facts())
    optional = (events.PromptAdmitted, events.ToolSucceeded, events.StepEnded)
    for place, event in enumerate(log):
        if isinstance(event, optional) or place == 0:
            assert grammar.check_log(log[:place] + log[place + 1 :]), f"{place} {event}"
