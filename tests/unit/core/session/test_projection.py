"""Each event's effect on the value that it is folded into."""

import pytest
from msgspec import UNSET

from perdure.core.session import projection
from perdure.schema.ids import MessageID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, SessionEvent
from perdure.schema.session.message import (
    AssistantMessage,
    ReasoningPart,
    ShellMessage,
    TextPart,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.session import RevertState, SessionInfo
from perdure.schema.session.tool import (
    CallProvider,
    CompletedState,
    ErrorState,
    PartProvider,
    PendingState,
    RunningState,
    TextContent,
    error_info,
)
from tests.fixtures import CREATED_MILLIS, TOKENS, Facts
from tests.requirements import requirement

NATIVE = {"p": {"item": "1"}}
RESULT_NATIVE = {"p": {"result": "2"}}


def fold(*followed: AssistantEvent, facts: Facts | None = None) -> AssistantMessage:
    message = projection.message_created((facts or Facts()).step("msg_a"))
    assert isinstance(message, AssistantMessage)
    for event in followed:
        message = projection.assistant_after(message, event)
    return message


def only_tool(message: AssistantMessage) -> ToolPart:
    (part,) = message.content
    assert isinstance(part, ToolPart)
    return part


def info(*followed: SessionEvent, facts: Facts, placeholder: bool = True) -> SessionInfo:
    session = projection.session_created(facts.created(placeholder=placeholder))
    for event in followed:
        session = projection.session_after(session, event)
    return session


def started(facts: Facts) -> tuple[AssistantEvent, AssistantEvent]:
    return facts.input_started("msg_a", "c"), facts.input_ended("msg_a", "c", '{"path":"a"}')


@requirement("S162")
def test_a_text_is_empty_until_its_end_gives_the_full_value() -> None:
    facts = Facts()
    opening = events.TextStarted(1, facts.session_id, MessageID("msg_a"), text_id="t")
    closing = events.TextEnded(2, facts.session_id, MessageID("msg_a"), text_id="t", text="all")
    assert fold(opening).content == (TextPart(id="t", text=""),)
    assert fold(opening, closing).content == (TextPart(id="t", text="all"),)


@requirement("S161")
def test_reasoning_keeps_the_metadata_that_it_was_given_last() -> None:
    facts, owner = Facts(), MessageID("msg_a")
    begun = events.ReasoningStarted(
        5, facts.session_id, owner, reasoning_id="r", provider_metadata=NATIVE
    )
    silent = events.ReasoningEnded(6, facts.session_id, owner, reasoning_id="r", text="hm")
    signed = events.ReasoningEnded(
        7,
        facts.session_id,
        owner,
        reasoning_id="r",
        text="hm",
        provider_metadata=RESULT_NATIVE,
    )
    for ending, kept in ((silent, NATIVE), (signed, RESULT_NATIVE)):
        (part,) = fold(begun, ending).content
        assert isinstance(part, ReasoningPart)
        assert part.provider_metadata == kept
        assert part.time is not UNSET
        assert (part.time.created, part.time.completed) == (5, ending.timestamp)


@requirement("S167")
def test_a_tool_goes_from_pending_to_running_to_completed() -> None:
    facts = Facts()
    steps = [*started(facts), facts.called("msg_a", "c"), facts.succeeded("msg_a", "c")]
    states = [only_tool(fold(*steps[:count])).state for count in range(1, 5)]
    assert states[0] == PendingState(input="")
    assert states[1] == PendingState(input='{"path":"a"}')
    assert states[2] == RunningState(input={"path": "a"}, structured={}, content=())
    assert states[3] == CompletedState(
        input={"path": "a"}, content=(), output_paths=(), structured={"lines": 1}
    )
    time = only_tool(fold(*steps)).time
    assert (time.created, time.ran, time.completed) == (
        steps[0].timestamp,
        steps[2].timestamp,
        steps[3].timestamp,
    )


@requirement("S167")
def test_progress_is_kept_when_a_running_tool_fails() -> None:
    facts = Facts()
    progress = events.ToolProgressed(
        facts.tick(),
        facts.session_id,
        MessageID("msg_a"),
        facts.called("msg_a", "c").call_id,
        structured={"done": 1},
        content=(TextContent(text="half"),),
    )
    state = only_tool(
        fold(*started(facts), facts.called("msg_a", "c"), progress, facts.tool_failed("msg_a", "c"))
    ).state
    assert state == ErrorState(
        input={"path": "a"},
        content=(TextContent(text="half"),),
        structured={"done": 1},
        error=error_info("no such file"),
    )


@requirement("S167")
def test_a_tool_that_fails_while_pending_has_an_empty_input() -> None:
    facts = Facts()
    state = only_tool(fold(*started(facts), facts.tool_failed("msg_a", "c"))).state
    assert isinstance(state, ErrorState)
    assert state.input == {}


@requirement("S161")
def test_the_metadata_of_a_call_and_of_its_result_stay_apart() -> None:
    facts = Facts()
    part = only_tool(
        fold(
            *started(facts),
            facts.called("msg_a", "c", CallProvider(executed=True, metadata=NATIVE)),
            facts.succeeded("msg_a", "c", CallProvider(executed=False, metadata=RESULT_NATIVE)),
        )
    )
    assert part.provider == PartProvider(
        executed=True, metadata=NATIVE, result_metadata=RESULT_NATIVE
    )


def test_what_comes_too_late_for_a_call_changes_nothing() -> None:
    facts = Facts()
    running = [*started(facts), facts.called("msg_a", "c")]
    for settled in (facts.succeeded("msg_a", "c"), facts.tool_failed("msg_a", "c")):
        message = fold(*running, settled)
        late: list[AssistantEvent] = [
            facts.input_ended("msg_a", "c", "late"),
            facts.called("msg_a", "c"),
            facts.succeeded("msg_a", "c"),
            facts.tool_failed("msg_a", "c"),
        ]
        for event in late:
            assert projection.assistant_after(message, event) == message


def test_a_success_for_a_call_that_never_ran_changes_nothing() -> None:
    facts = Facts()
    pending = fold(*started(facts))
    assert projection.assistant_after(pending, facts.succeeded("msg_a", "c")) == pending


def test_an_update_for_an_unknown_part_changes_nothing() -> None:
    facts = Facts()
    message = fold()
    for event in (facts.called("msg_a", "x"), facts.tool_failed("msg_a", "x")):
        assert projection.assistant_after(message, event) == message
    assert fold(facts.input_ended("msg_a", "x")).content == ()


def test_a_repeated_part_id_means_the_last_part() -> None:
    facts = Facts()
    twice = [*facts.text("msg_a", "t", "one"), *facts.text("msg_a", "t", "two")]
    texts = [event for event in twice if isinstance(event, events.TextStarted | events.TextEnded)]
    assert [getattr(part, "text", None) for part in fold(*texts).content] == ["one", "two"]


def test_a_step_that_ended_says_how_and_what_it_cost() -> None:
    facts = Facts()
    ended = fold(facts.ended("msg_a", "length", snapshot="after"), facts=facts)
    assert (ended.finish, ended.cost, ended.tokens) == ("length", 0.25, TOKENS)
    assert ended.snapshot is not UNSET
    assert (ended.snapshot.start, ended.snapshot.end) == (UNSET, "after")
    assert ended.snapshot.files == ("a.txt",)


def test_a_snapshot_at_the_start_of_a_step_is_kept_at_its_end() -> None:
    facts = Facts()
    message = projection.message_created(facts.step("msg_a", snapshot="before"))
    assert isinstance(message, AssistantMessage)
    for ending, end in ((facts.ended("msg_a"), UNSET), (facts.ended("msg_a", snapshot="z"), "z")):
        snapshot = projection.assistant_after(message, ending).snapshot
        assert snapshot is not UNSET
        assert (snapshot.start, snapshot.end) == ("before", end)


def test_a_failed_step_is_over_and_says_why() -> None:
    failed = fold(Facts().failed("msg_a"))
    assert failed.finish == "error"
    assert failed.error == error_info("the provider is gone")
    assert failed.time.completed is not UNSET


def test_a_new_step_closes_an_open_one_and_never_touches_a_closed_one() -> None:
    facts = Facts()
    following = facts.step("msg_b")
    closed = projection.close_superseded(fold(), following)
    assert closed.time.completed == following.timestamp
    assert closed.finish is UNSET
    done = fold(facts.ended("msg_a"))
    assert projection.close_superseded(done, following) == done


def test_a_shell_command_gets_its_output() -> None:
    facts = Facts()
    begun = facts.stamped(events.ShellStarted, message_id="msg_s", call_id="c", command="ls")
    message = projection.message_created(begun)
    assert isinstance(message, ShellMessage)
    ended = projection.shell_after(
        message, facts.stamped(events.ShellEnded, call_id="c", output="a\nb")
    )
    assert (ended.command, ended.output) == ("ls", "a\nb")
    assert ended.time.completed is not UNSET


@requirement("S148")
def test_a_user_message_has_the_id_of_its_prompt_and_the_time_of_its_admission() -> None:
    promoted = Facts().promoted("msg_u", "hello")
    message = projection.message_created(promoted)
    assert isinstance(message, UserMessage)
    assert (message.id, message.text) == ("msg_u", "hello")
    assert message.time.created == promoted.timestamp


@pytest.mark.parametrize(
    "event",
    [
        Facts().admitted("msg_u"),
        Facts().stamped(events.CompactionStarted, message_id="msg_c", reason="auto"),
        Facts().stamped(events.Moved, location=LocationRef(directory="/x")),
        Facts().stamped(events.RevertCleared),
        Facts().ended("msg_a"),
        Facts().created(),
    ],
    ids=lambda event: type(event).__name__,
)
def test_other_events_bring_no_message(event: SessionEvent) -> None:
    assert not isinstance(event, events.MessageEvent)


def test_the_first_prompt_names_the_session_and_later_ones_do_not() -> None:
    facts = Facts()
    first = facts.promoted("msg_1", "fix the build\nplease")
    assert info(first, facts.promoted("msg_2", "thanks"), facts=facts).title == "fix the build"
    assert info(first, facts=facts, placeholder=False).title == "Chosen"


def test_a_prompt_without_words_leaves_the_placeholder_for_the_next() -> None:
    facts = Facts()
    blank = facts.promoted("msg_1", " \n")
    assert info(blank, facts=facts).title.startswith("New session - ")
    assert info(blank, facts.promoted("msg_2", "now"), facts=facts).title == "now"


def test_cost_and_tokens_add_up_over_steps() -> None:
    facts = Facts()
    session = info(facts.ended("msg_a"), facts.ended("msg_b"), facts=facts)
    assert session.cost == 0.5
    assert session.tokens == TOKENS.plus(TOKENS)


def test_activity_moves_forward_only() -> None:
    facts = Facts()
    early = facts.promoted("msg_1")
    late = facts.ended("msg_a")
    session = info(late, early, facts=facts)
    assert session.time.updated == late.timestamp
    assert info(facts.admitted("msg_2"), facts=facts).time.updated == CREATED_MILLIS


def test_a_selected_model_is_reported_with_its_variant() -> None:
    facts = Facts()
    bare = ModelRef(id="m2", provider_id="p")
    switched = facts.stamped(events.ModelSwitched, message_id="msg_m", model=bare)
    model = info(switched, facts=facts).model
    assert model == ModelRef(id="m2", provider_id="p", variant="default")


def test_agent_place_and_revert_follow_their_events() -> None:
    facts = Facts()
    moved = facts.stamped(
        events.Moved, location=LocationRef(directory="/elsewhere"), subdirectory="pkg"
    )
    staged = facts.stamped(events.RevertStaged, revert=RevertState(message_id=MessageID("msg_1")))
    agent = facts.stamped(events.AgentSwitched, message_id="msg_a", agent="plan")
    session = info(agent, moved, staged, facts=facts)
    assert (session.agent, session.subpath) == ("plan", "pkg")
    assert session.location.directory == "/elsewhere"
    assert session.revert is not UNSET
    for ending in (
        facts.stamped(events.RevertCleared),
        facts.stamped(events.RevertCommitted, message_id="msg_1"),
    ):
        assert projection.session_after(session, ending).revert is UNSET


def test_events_folded_together_make_what_they_make_one_by_one() -> None:
    facts = Facts()
    batch: list[AssistantEvent] = [
        *started(facts),
        facts.called("msg_a", "c"),
        facts.input_started("msg_a", "d"),
        facts.succeeded("msg_a", "c"),
        # A provider's id may repeat: the later part is meant from here on.
        facts.input_started("msg_a", "c"),
        facts.tool_failed("msg_a", "c"),
        facts.tool_failed("msg_a", "d"),
        facts.tool_failed("msg_a", "unknown"),
        facts.ended("msg_a"),
    ]
    created = projection.message_created(Facts().step("msg_a"))
    assert isinstance(created, AssistantMessage)
    assert projection.assistant_after(created, *batch) == fold(*batch)
