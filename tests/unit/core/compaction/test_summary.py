"""How a model is asked to condense, what is read to it, and what is carried past it."""

import pytest

from perdure.core import limits
from perdure.core.compaction import fallback_summary, preserved, summary_input, summary_request
from perdure.core.compaction.summary_request import SummaryInstructions
from perdure.core.request import token_budget
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.models.model import ModelLimit
from perdure.schema.session.message import (
    AssistantMessage,
    Created,
    Span,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.session.todo import Todo
from perdure.schema.session.tool import CompletedState, TextContent
from tests.fixtures import MODEL


def user(text: str) -> UserMessage:
    return UserMessage(id=MessageID("msg_u"), time=Created(created=1), text=text)


def exchange(result: str) -> AssistantMessage:
    state = CompletedState(
        input={}, content=(TextContent(text=result),), output_paths=(), structured={}
    )
    part = ToolPart(id=ToolCallID("c"), name="read", state=state, time=ToolTime(created=1))
    return AssistantMessage(
        id=MessageID("msg_a"), time=Span(created=1), agent="build", model=MODEL, content=(part,)
    )


# ---- the question -------------------------------------------------------------------------------


def test_the_request_names_every_section_and_no_summary_that_never_was() -> None:
    asked = summary_request.request_text("x")
    sections = ("Objective", "Important Details", "Work State", "Next Move", "Relevant Files")
    places = [asked.index(f"## {section}\n") for section in sections]
    assert places == sorted(places)
    assert not any(word in asked for word in ("previous", "guidance", "instruction"))


def test_the_earlier_summary_and_the_wishes_are_part_of_the_request() -> None:
    wish = SummaryInstructions(guidance="be exact", instruction="keep the ports")
    asked = summary_request.request_text("talk", previous_summary="so far", wish=wish)
    for block in (
        "<conversation>\ntalk\n</conversation>",
        "<previous-summary>\nso far\n</previous-summary>",
        "<guidance>\nbe exact\n</guidance>",
        "<instruction>\nkeep the ports\n</instruction>",
    ):
        assert block in asked


@pytest.mark.parametrize(
    ("context", "output", "wanted", "tokens"),
    [
        (0, 0, 4_096, 4_096),
        (200_000, 32_000, 4_096, 4_096),
        (200_000, 1_000, 4_096, 1_000),
        (200_000, 32_000, 500, 500),
        (8_000, 8_000, 4_096, 1_000),
    ],
)
def test_a_summary_is_as_long_as_model_and_room_allow(
    context: int, output: int, wanted: int, tokens: int
) -> None:
    limit = ModelLimit(context=context, output=output)
    assert summary_request.answer_tokens(limit, context, wanted=wanted) == tokens


@pytest.mark.parametrize("size", [8_000, 32_000, 200_000])
def test_what_is_read_fits_with_the_summary_so_far_and_the_next_one(size: int) -> None:
    limit = ModelLimit(context=size, output=0)
    context = summary_request.context_tokens(limit)
    answer = summary_request.answer_tokens(limit, context)
    wish = SummaryInstructions(guidance="g" * 400)
    readable = summary_request.conversation_tokens(
        context, answer=answer, previous_summary="", wish=wish
    )
    assert readable is not None
    so_far = "s" * 8 * answer
    asked = summary_request.request_text("c" * 4 * readable, previous_summary=so_far, wish=wish)
    assert token_budget.estimate(asked) + answer <= context + 1 < size


@pytest.mark.parametrize(
    ("limit", "believed", "context"),
    [
        (ModelLimit(context=0, output=0), 0, 0),
        (ModelLimit(context=0, output=0), 4_000, 3_000),
        (ModelLimit(context=8_000, output=0), 4_000, 3_000),
        (ModelLimit(context=8_000, output=0), 40_000, 6_000),
        (ModelLimit(context=100_000, output=0, input=4_000), 0, 3_000),
    ],
)
def test_the_narrowest_bound_that_is_known_counts_with_a_margin(
    limit: ModelLimit, believed: int, context: int
) -> None:
    assert summary_request.context_tokens(limit, believed=believed) == context


def test_a_context_that_is_unknown_has_no_bound() -> None:
    found = summary_request.conversation_tokens(
        0, answer=9, previous_summary="", wish=SummaryInstructions()
    )
    assert found is None


@pytest.mark.parametrize(
    ("summary", "faulty"),
    [("", True), (" \n\t", True), ("fine", False), ("x" * 800, False), ("x" * 804, True)],
)
def test_an_empty_or_endless_answer_is_no_summary(summary: str, *, faulty: bool) -> None:
    assert (summary_request.find_fault(summary, tokens_max=100) is not None) is faulty


# ---- what is read -------------------------------------------------------------------------------


def test_old_results_are_shortened_before_anything_else_is_given_up() -> None:
    messages = [user("look"), *(exchange("y" * 10_000) for _ in range(10))]
    (whole,) = summary_input.split_conversation(messages, "", tokens_max=10_000)
    (pruned,) = summary_input.split_conversation(messages, "", tokens_max=2_000)
    assert whole.count("y") == 10 * limits.TRANSCRIPT_RESULT_CHARS_MAX
    assert pruned.count("y") == 10 * limits.PRUNED_RESULT_CHARS_MAX
    assert pruned.count("more characters left out") == 10
    assert summary_input.split_conversation(messages, "", tokens_max=2_000) == [pruned]


def test_a_conversation_that_cannot_be_read_at_once_is_read_in_parts_in_order() -> None:
    texts = [f"{number} " + "z" * 1_000 for number in range(20)]
    found = summary_input.join_parts(texts, tokens_max=600)
    assert "\n\n".join(found) == "\n\n".join(texts)
    assert all(token_budget.estimate(part) <= 600 for part in found)
    assert len(found) == 10


@pytest.mark.parametrize("letter", ["x", "\u4e2d", "\U0001f600"])
def test_one_message_larger_than_a_part_is_divided(letter: str) -> None:
    found = summary_input.join_parts([letter * 100_000], tokens_max=500)
    assert "".join(part.replace("\n\n", "") for part in found) == letter * 100_000
    assert all(token_budget.estimate(part) <= 500 for part in found)


def test_never_more_parts_than_may_be_asked_for_and_the_newest_stay() -> None:
    messages = [user(f"{number} " + "z" * 4_000) for number in range(200)]
    found = summary_input.split_conversation(messages, "oldest", tokens_max=2_000)
    assert len(found) == limits.SUMMARY_PARTS_MAX
    assert "[User]: 199 " in found[-1]


def test_where_nobody_knows_what_can_be_read_it_is_read_at_once() -> None:
    messages = [user("z" * 10_000) for _ in range(20)]
    assert len(summary_input.split_conversation(messages, "", tokens_max=None)) == 1


# ---- what is carried ----------------------------------------------------------------------------


def test_the_first_and_the_newest_messages_are_carried_word_for_word() -> None:
    said = ["the goal", *(f"remark {number} " + "w" * 360 for number in range(50)), "use tabs"]
    found = preserved.preserve_facts(said, (), tokens_max=500).directives
    assert found[0] == "the goal"
    assert found[-1] == "use tabs"
    assert set(found) <= set(said)
    assert list(found) == [text for text in said if text in found]
    assert sum(map(token_budget.estimate, found)) <= 500


def test_a_pasted_file_is_carried_by_its_beginning_and_says_so() -> None:
    found = preserved.preserve_facts(
        ["fix this: " + "p" * 100_000, "quickly"], (), tokens_max=4_000
    )
    assert found.directives[0].startswith("fix this: ppp")
    assert found.directives[0].endswith("more characters left out]")
    assert found.directives[1] == "quickly"
    assert found.tokens <= 4_000


def test_the_prompt_that_is_worked_on_may_be_longer() -> None:
    found = preserved.preserve_facts(["goal", "n" * 9_000], (), tokens_max=400, latest_chars=10_000)
    assert found.directives == ("goal", "n" * 9_000)


def test_open_items_are_carried_and_closed_ones_are_not() -> None:
    todos = tuple(
        Todo(content=status, status=status, priority="high")
        for status in ("pending", "completed", "in_progress", "cancelled")
    )
    found = preserved.preserve_facts([], todos, tokens_max=400)
    assert [todo.content for todo in found.todos] == ["pending", "in_progress"]
    many = (Todo(content="t" * 400, status="pending", priority="low"),) * 200
    assert 0 < preserved.preserve_facts(["say"], many, tokens_max=1_000).tokens <= 1_000


def test_nothing_said_is_nothing_carried() -> None:
    assert preserved.preserve_facts([], (), tokens_max=100) == preserved.PreservedFacts()


# ---- without a model ----------------------------------------------------------------------------


def test_a_cut_without_a_model_says_why_and_keeps_the_newest() -> None:
    messages = [user(f"{number} " + "z" * 200) for number in range(100)]
    cut = fallback_summary.summary(messages, "known", reason="HTTP 500", tokens_max=1_000)
    assert "HTTP 500" in cut
    assert "known" in cut
    assert "[User]: 99 " in cut
    assert "[User]: 1 " not in cut
    assert token_budget.estimate(cut) <= 1_000
    again = fallback_summary.summary(messages, "known", reason="HTTP 500", tokens_max=1_000)
    assert cut == again
