"""What a fork begins with, from a log and a cut."""

from collections.abc import Sequence

from perdure.core.session import fork
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.fixtures import Facts, answered

INTO = SessionID("ses_fork")


def kinds(log: Sequence[SessionEvent]) -> list[str]:
    return [type(event).__name__ for event in fork.copy_events(log, into=INTO)]


def test_every_copy_speaks_of_the_fork_and_of_messages_of_its_own() -> None:
    facts = Facts()
    log = [facts.created(), *answered(facts, "msg_1", "msg_2", "said")]
    copies = fork.copy_events(log, into=INTO)
    assert {event.session_id for event in copies} == {INTO}
    names = {
        getattr(e, "message_id", None) or getattr(e, "assistant_message_id", None) for e in copies
    }
    assert len(names) == 2
    assert names.isdisjoint({"msg_1", "msg_2"})
    assert copies == fork.copy_events(log, into=INTO)
    assert copies != fork.copy_events(log, into=SessionID("ses_another"))


def test_an_answer_that_is_not_over_is_left_out_with_all_its_events() -> None:
    facts = Facts()
    log = [
        facts.created(),
        *answered(facts, "msg_1", "msg_2", "said"),
        facts.step("msg_3"),
        *facts.text("msg_3", "t", "half"),
    ]
    assert kinds(log) == kinds(log[:-3])


def test_a_call_without_a_result_takes_its_message_along() -> None:
    facts = Facts()
    step = [facts.step("msg_1"), facts.called("msg_1", "a"), facts.ended("msg_1", "tool-calls")]
    log = [facts.created(), *step]
    assert kinds(log) == []
    assert kinds([*log, facts.tool_failed("msg_1", "a")]) == [
        "StepStarted",
        "ToolCalled",
        "StepEnded",
        "ToolFailed",
    ]


def test_what_waits_and_what_is_only_about_the_original_stay_there() -> None:
    facts = Facts()
    log = [
        facts.created(),
        facts.admitted("msg_1"),
        facts.admitted("msg_2"),
        facts.promoted("msg_2"),
        facts.stamped(events.Renamed, title="x"),
        facts.stamped(events.Archived),
        facts.stamped(events.PromptCancelled, message_id="msg_1"),
        facts.stamped(events.Forked, source="ses_source", seq=1),
    ]
    assert kinds(log) == ["PromptAdmitted", "PromptPromoted"]


def test_a_command_of_the_user_that_still_runs_is_left_out() -> None:
    facts = Facts()
    created = facts.created()
    started = events.ShellStarted(
        timestamp=1,
        session_id=created.session_id,
        message_id=MessageID("msg_1"),
        call_id=ToolCallID("call_1"),
        command="make",
    )
    ended = events.ShellEnded(
        timestamp=2, session_id=created.session_id, call_id=ToolCallID("call_1"), output="done"
    )
    assert kinds([created, started]) == []
    assert kinds([created, started, ended]) == ["ShellStarted", "ShellEnded"]
