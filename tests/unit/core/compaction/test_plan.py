"""What is condensed, what is kept, and what of it is worth it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.compaction import plan as compaction
from perdure.core.compaction import transcript
from perdure.core.compaction.plan import CompactionPlan, Material
from perdure.core.request import token_budget
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.session import message as messages
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    CompactionMessage,
    Created,
    ReasoningPart,
    SessionMessage,
    Span,
    TextPart,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.session.prompt import FileAttachment
from perdure.schema.session.tool import (
    CompletedState,
    ErrorState,
    FileContent,
    PendingState,
    TextContent,
    ToolState,
    error_info,
)
from tests.fixtures import MODEL, SESSION
from tests.requirements import requirement

ID = MessageID("msg_one")
_NUMBERS = itertools.count()
AT = Created(created=1)


def user(text: str) -> UserMessage:
    return UserMessage(id=MessageID(f"msg_{next(_NUMBERS)}"), time=AT, text=text)


def of_tokens(tokens: int, letter: str = "x") -> UserMessage:
    """A message that is estimated at exactly this many when it is sent, four of them around it."""
    return user(letter * (4 * (tokens - 4)))


def assistant(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(
        id=ID, time=Span(created=1), agent="build", model=MODEL, content=tuple(parts)
    )


def tool(state: ToolState) -> ToolPart:
    return ToolPart(id=ToolCallID("c"), name="read", state=state, time=ToolTime(created=1))


def completed(*content: TextContent | FileContent) -> CompletedState:
    return CompletedState(
        input={"path": "a"}, content=content, output_paths=(), structured={"n": 1}
    )


def checkpoint(summary: str = "so far", recent: str = "[User]: lately") -> CompactionMessage:
    return CompactionMessage(id=ID, time=AT, reason="manual", summary=summary, recent=recent)


def planned(*history: SessionMessage, keep: int = 100, room: int | None = None) -> CompactionPlan:
    prompts = tuple(m for m in history if isinstance(m, UserMessage))
    tokens = compaction.measure(history, MODEL)
    material = Material(history=history, tokens=tokens, prompts=prompts)
    plan = compaction.plan(material, compaction.divide_tokens(room, keep_tokens=keep))
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("sizes", "keep", "condensed"),
    [
        ([50, 50], 99, 1),
        ([50, 50, 50], 100, 1),
        ([10, 200, 10], 100, 2),
        ([10, 10, 101], 100, 3),
        ([10, 10, 100], 100, 2),
        ([60, 60], 10, 2),
        ([5_000, 5_000, 3_000], limits.COMPACTION_KEEP_TOKENS, 1),
    ],
)
def test_the_newest_messages_that_fit_are_kept_whole(
    sizes: list[int], keep: int, condensed: int
) -> None:
    history = [of_tokens(size, letter) for size, letter in zip(sizes, "abc", strict=False)]
    plan = planned(*history, keep=keep)
    assert list(plan.older) == history[:condensed]
    assert plan.recent == "\n\n".join(transcript.text_of(m) for m in history[condensed:])


@pytest.mark.parametrize(
    "history",
    [
        [],
        [user("short")],
        [of_tokens(50), of_tokens(50)],
        [checkpoint()],
        [messages.AgentSwitchedMessage(id=ID, time=AT, agent="plan")],
        [assistant()],
    ],
)
def test_a_conversation_that_fits_is_left_alone(history: list[SessionMessage]) -> None:
    material = Material(history=tuple(history), tokens=compaction.measure(history, MODEL))
    assert compaction.plan(material, compaction.divide_tokens(None, keep_tokens=100)) is None


def test_an_earlier_checkpoint_is_carried_forward() -> None:
    plan = planned(checkpoint(), user("more"))
    assert (plan.previous_summary, plan.earlier, plan.older) == ("so far", "[User]: lately", ())
    assert plan.recent == "[User]: more"
    assert "so far" in plan.mechanical_summary("no model")
    assert "[User]: lately" in plan.mechanical_summary("no model")


def test_a_call_and_its_result_are_condensed_or_kept_together() -> None:
    exchange = assistant(tool(completed(TextContent(text="y" * 1_500))))
    for keep in range(0, 900, 50):
        plan = planned(of_tokens(1_000), exchange, user("next"), keep=keep)
        in_recent = "[Assistant tool call]" in plan.recent
        assert in_recent == ("[Tool result]" in plan.recent) == (exchange not in plan.older)


@given(
    room=st.integers(600, 200_000),
    sizes=st.lists(st.integers(1, 5_000), min_size=1, max_size=12),
    letter=st.sampled_from("x\u00fc\u4e2d\U0001f600"),
)
def test_a_checkpoint_without_a_model_always_has_room(
    room: int, sizes: list[int], letter: str
) -> None:
    history = [user(letter * (4 * size)) for size in sizes]
    tokens = compaction.measure(history, MODEL)
    material = Material(history=tuple(history), tokens=tokens, prompts=tuple(history))
    plan = compaction.plan(material, compaction.divide_tokens(room, keep_tokens=8_000))
    if plan is not None:
        assert plan.tokens_with(plan.mechanical_summary("because " * 100)) <= room


@pytest.mark.parametrize(
    ("before", "after", "enough"), [(100, 80, True), (100, 81, False), (0, 0, True), (0, 1, False)]
)
def test_what_frees_less_than_a_fifth_is_not_worth_it(
    before: int, after: int, *, enough: bool
) -> None:
    assert compaction.frees_enough(before, after) is enough


@requirement("S36")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user("hi\nthere"), "[User]: hi\nthere"),
        (
            UserMessage(
                id=ID,
                time=AT,
                text="see",
                files=(
                    FileAttachment(
                        uri="data:image/png;base64,AAAA", mime="image/png", name="a.png"
                    ),
                    FileAttachment(uri="file:///b", mime="text/plain"),
                ),
            ),
            "[User]: see\n[Attached image/png: a.png]\n[Attached text/plain]",
        ),
        (
            assistant(
                ReasoningPart(id="r", text=""),
                ReasoningPart(id="s", text="hm"),
                TextPart(id="t", text="so"),
            ),
            "[Assistant reasoning]: hm\n[Assistant]: so",
        ),
        (
            assistant(tool(completed(TextContent(text="found"), FileContent(uri="u", mime="m/x")))),
            '[Assistant tool call]: read({"path":"a"})\n[Tool result]: found\n[Attached m/x]',
        ),
        (
            assistant(tool(completed())),
            '[Assistant tool call]: read({"path":"a"})\n[Tool result]: {"n":1}',
        ),
        (
            assistant(
                tool(ErrorState(input={}, content=(), structured={}, error=error_info("gone")))
            ),
            "[Assistant tool call]: read({})\n[Tool error]: gone",
        ),
        (
            assistant(tool(PendingState(input='{"pa'))),
            '[Assistant tool call]: read({"pa)\n[Tool error]: Tool execution interrupted',
        ),
        (messages.SystemMessage(id=ID, time=AT, text="Tuesday"), "[System update]: Tuesday"),
        (
            messages.SyntheticMessage(id=ID, time=AT, session_id=SESSION, text="note"),
            "[Synthetic context]: note",
        ),
        (
            messages.ShellMessage(
                id=ID, time=Span(created=1), call_id=ToolCallID("c"), command="ls", output="a b"
            ),
            "[Shell]: ls\na b",
        ),
        (checkpoint(), ""),
        (messages.ModelSwitchedMessage(id=ID, time=AT, model=MODEL), ""),
    ],
)
def test_every_message_has_its_labelled_text(message: SessionMessage, text: str) -> None:
    assert transcript.text_of(message) == text


def test_long_tool_output_is_cut_and_says_so() -> None:
    text = transcript.text_of(assistant(tool(completed(TextContent(text="y" * 5_000)))))
    assert text.count("y") == limits.TRANSCRIPT_RESULT_CHARS_MAX
    assert text.endswith("[3000 more characters left out]")


def test_a_pruned_result_is_kept_as_its_marker() -> None:
    pruned = ToolPart(
        id=ToolCallID("c"),
        name="read",
        state=completed(TextContent(text="secret words " * 500)),
        time=ToolTime(created=1, pruned=2),
    )
    history = [assistant(TextPart(id="t", text="old " * 400)), user("go"), assistant(pruned)]
    plan = planned(*history, keep=200)
    assert "was removed here to make room" in plan.recent
    assert "secret words" not in plan.recent
    # A summary is still made from the whole text.
    assert "secret words" in transcript.text_of(history[-1])


@given(
    sizes=st.lists(st.integers(1, 3_000), min_size=2, max_size=8),
    pruned=st.sets(st.integers(0, 7)),
    keep=st.integers(50, 2_000),
)
def test_what_is_kept_is_never_larger_than_what_is_sent(
    sizes: list[int], pruned: set[int], keep: int
) -> None:
    history = [
        assistant(
            ToolPart(
                id=ToolCallID("c"),
                name="read",
                state=completed(TextContent(text="word " * size)),
                time=ToolTime(created=1, pruned=2) if at in pruned else ToolTime(created=1),
            )
        )
        for at, size in enumerate(sizes)
    ]
    material = Material(history=tuple(history), tokens=compaction.measure(history, MODEL))
    plan = compaction.plan(material, compaction.divide_tokens(None, keep_tokens=keep))
    if plan is not None:
        # The line ends between messages are counted in none of them.
        assert token_budget.estimate(plan.recent) <= keep + len(history)
