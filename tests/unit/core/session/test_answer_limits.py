"""The bounds of one answer: what came before them is kept, and the failure names the limit."""

import pytest

from perdure.core import limits
from perdure.core.session.answer_limits import AnswerLimits
from perdure.llm import event as llm
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.llm.message import ToolResult

MIB = 1024 * 1024


def taken(size: AnswerLimits, *events: LLMEvent) -> tuple[list[LLMEvent], str]:
    """What is let through, and the failure after it."""
    kept: list[LLMEvent] = []
    stopped: LLMError | None = None
    try:
        kept.extend(size.within(events))
    except LLMError as error:
        stopped = error
    assert stopped is None or not stopped.retryable
    return kept, "" if stopped is None else stopped.message


DELTAS = [
    (llm.TextDelta, limits.ANSWER_TEXT_CHARS_MAX, "characters of text"),
    (llm.ReasoningDelta, limits.ANSWER_REASONING_CHARS_MAX, "characters of reasoning"),
    (llm.ToolInputDelta, limits.ANSWER_INPUT_CHARS_MAX, "characters of tool input"),
]


@pytest.mark.parametrize(("kind", "most", "what"), DELTAS)
def test_a_delta_is_cut_at_the_last_character_that_an_answer_may_have(
    kind: type[llm.TextDelta], most: int, what: str
) -> None:
    size = AnswerLimits()
    assert taken(size, kind("a", "x" * (most - 3)), kind("b", "yz"))[1] == ""
    kept, failure = taken(
        size, kind("c", ""), kind("c", "\U0001f600"), kind("d", "123"), kind("e", "4")
    )
    assert kept == [kind("c", ""), kind("c", "\U0001f600"), kind("d", "")]
    assert f"more than {most:,} {what}, the most" in failure


def test_texts_reasonings_and_inputs_have_limits_of_their_own() -> None:
    size = AnswerLimits()
    whole = [kind("a", "x" * most) for kind, most, _ in DELTAS]
    assert taken(size, *whole) == (whole, "")


@pytest.mark.parametrize(
    "part",
    [llm.TextStart("a"), llm.ReasoningStart("a"), llm.ToolInputStart("a", "f")],
)
def test_parts_are_counted_whatever_their_kind(part: LLMEvent) -> None:
    size = AnswerLimits()
    others = [llm.ToolCall(f"c{n}", "f", {}) for n in range(limits.ANSWER_PARTS_MAX - 1)]
    assert taken(size, part, *others)[1] == ""
    kept, failure = taken(size, llm.TextEnd("a"), part, llm.TextEnd("a"))
    assert kept == [llm.TextEnd("a")]
    assert "more than 2,048 parts" in failure


def test_the_input_of_a_call_is_counted_once_however_it_is_told() -> None:
    size = AnswerLimits()
    most = limits.ANSWER_INPUT_CHARS_MAX
    raw = "x" * (most // 2)
    streamed = (
        llm.ToolInputStart("a", "f"),
        llm.ToolInputDelta("a", raw),
        llm.ToolInputEnd("a", raw),
        llm.ToolCall("a", "f", {"value": raw}),
    )
    assert taken(size, *streamed)[1] == ""
    at_the_end = (llm.ToolInputStart("b", "f"), llm.ToolInputEnd("b", raw))
    assert taken(size, *at_the_end)[1] == ""
    for more in (llm.ToolInputEnd("c", "x"), llm.ToolCall("d", "f", {})):
        kept, failure = taken(size, more)
        assert kept == []
        assert "characters of tool input" in failure


def test_hosted_results_and_metadata_are_counted_together() -> None:
    size = AnswerLimits()
    note = {"p": {"signature": "s" * 7 * MIB}}
    result = llm.HostedToolResult("a", ToolResult("json", {"found": "f" * 7 * MIB}))
    assert taken(size, llm.ReasoningEnd("r", note), result)[1] == ""
    kept, failure = taken(size, llm.ReasoningEnd("r", note))
    assert kept == []
    assert "more than 16,777,216 bytes of hosted results and metadata" in failure
