"""What a dead process left unfinished."""

import pytest
from msgspec import UNSET

from perdure.core.session import projection, recovery
from perdure.schema.session.event import AssistantEvent
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.session.tool import CallProvider, ErrorState
from tests.fixtures import SESSION, Facts
from tests.requirements import requirement


def assistant(facts: Facts, id: str, *events: AssistantEvent) -> AssistantMessage:
    message = projection.message_created(facts.step(id))
    assert isinstance(message, AssistantMessage)
    for event in events:
        message = projection.assistant_after(message, event)
    return message


@requirement("S189", "S70")
def test_each_open_call_is_failed_once_and_settled_ones_are_left_alone() -> None:
    facts = Facts()
    history: list[SessionMessage] = [
        assistant(facts, "msg_1", facts.input_started("msg_1", "pending")),
        assistant(
            facts,
            "msg_2",
            facts.input_started("msg_2", "running"),
            facts.called("msg_2", "running"),
            facts.input_started("msg_2", "done"),
            facts.called("msg_2", "done"),
            facts.succeeded("msg_2", "done"),
            facts.input_started("msg_2", "broken"),
            facts.tool_failed("msg_2", "broken"),
        ),
    ]
    failures = recovery.settle_dangling(SESSION, history, now=7)
    assert [(f.assistant_message_id, f.call_id) for f in failures] == [
        ("msg_1", "pending"),
        ("msg_2", "running"),
    ]
    # The first was never made; of the second it is not known what it did.
    assert [f.error.message for f in failures] == [recovery.INTERRUPTED, recovery.OUTCOME_UNKNOWN]
    assert all(f.error.message.startswith("Tool execution interrupted") for f in failures)
    assert all(f.result is UNSET and f.timestamp == 7 for f in failures)


def test_a_call_whose_command_could_not_be_ended_says_what_still_runs() -> None:
    facts = Facts()
    open_call = facts.input_started("msg_1", "c"), facts.called("msg_1", "c")
    message = assistant(facts, "msg_1", *open_call)
    orphans = ("sleep (process 7)", "make (process 9)")
    (failure,) = recovery.settle_dangling(SESSION, [message], now=7, orphans=orphans)
    assert failure.error.message == (
        "Tool execution interrupted; outcome unknown, still running: sleep (process 7),"
        " make (process 9)"
    )


@requirement("S189", "S161")
@pytest.mark.parametrize("executed", [True, False])
def test_what_the_provider_knows_of_its_call_survives(*, executed: bool) -> None:
    facts = Facts()
    provider = CallProvider(executed=executed, metadata={"p": {"item": "1"}})
    message = assistant(
        facts, "msg_1", facts.input_started("msg_1", "c"), facts.called("msg_1", "c", provider)
    )
    (failure,) = recovery.settle_dangling(SESSION, [message], now=7)
    assert failure.provider == provider


@requirement("S189")
def test_a_settled_history_needs_nothing_more() -> None:
    facts = Facts()
    message = assistant(facts, "msg_1", facts.input_started("msg_1", "c"))
    (failure,) = recovery.settle_dangling(SESSION, [message], now=7)
    settled = projection.assistant_after(message, failure)
    (part,) = settled.content
    assert isinstance(getattr(part, "state", None), ErrorState)
    assert recovery.settle_dangling(SESSION, [settled], now=8) == ()
    assert recovery.settle_dangling(SESSION, [], now=8) == ()
